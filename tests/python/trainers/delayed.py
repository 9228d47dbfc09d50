# SPDX-License-Identifier: Apache-2.0
"""One rank of trainings that are delayed, or local for a while."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from report import digest, report
from torch.nn.parallel import DistributedDataParallel

import braid.torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import quadratics  # noqa: E402

STEPS = 21
CENTRES = (1.0, -3.0, 2.5, 7.0)
LOOK_S = 0.3  # Nobody comes within this time who is not to come.
METHODS: dict[str, dict[str, Any]] = {
    "od": {"method": "od-sgd"},
    "od dc": {"method": "od-sgd", "local": "dc"},
    "od adc": {"method": "od-sgd", "local": "adc"},
    "ssd": {"method": "ssd-sgd", "local": "sgd", "pull_every": 3, "force": True},
    "ssd glu": {"method": "ssd-sgd", "local": "glu", "pull_every": 5},
}


def on_quadratics(worker: str, **options: Any) -> dict[str, Any]:
    x = torch.nn.Parameter(torch.tensor([quadratics.START], dtype=torch.float64))
    optimizer = braid.torch.DelayedOptimizer(
        [x], lr=quadratics.LR, momentum=0.8, weight_decay=0.02, warmup_steps=0, worker=worker, **options
    )
    seen = []
    for _ in range(STEPS):
        x.grad = (x.detach() - CENTRES[dist.get_rank()]).clone()
        optimizer.step()
        seen.append(x.item())
    optimizer.finish()
    return {"seen": seen, "end": x.item()}


class Training:
    """A small model whose loss falls."""

    def __init__(self, *, wrap: bool = False) -> None:
        torch.manual_seed(7)
        self.module = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 5))
        self.model = DistributedDataParallel(self.module) if wrap else self.module
        self.target = torch.randn(20, 5) / 4
        self.data = torch.Generator().manual_seed(100 + dist.get_rank())
        self.losses: list[float] = []

    def step(self, optimizer: Any) -> None:
        inputs = torch.randn(32, 20, generator=self.data)
        loss = torch.nn.functional.mse_loss(self.model(inputs), inputs @ self.target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        self.losses.append(loss.item())

    def result(self) -> dict[str, Any]:
        return {"losses": self.losses, "digest": digest(self.module.parameters())}


def delayed(steps: int = 60, *, wrap: bool = False, **options: Any) -> dict[str, Any]:
    training = Training(wrap=wrap)
    optimizer = braid.torch.DelayedOptimizer(training.model.parameters(), lr=0.2, momentum=0.5, **options)
    apart = []
    for _ in range(steps):
        training.step(optimizer)
        apart.append(digest(training.module.parameters()))
    optimizer.finish()
    return {**training.result(), "apart": apart[-1]}


def blocked() -> dict[str, bool]:
    """The last rank is late: the others may go on by one step."""
    late, rank = dist.get_world_size() - 1, dist.get_rank()
    training = Training()
    optimizer = braid.torch.DelayedOptimizer(
        training.model.parameters(), lr=0.2, warmup_steps=0, worker="rank"
    )
    for _ in range(3):
        training.step(optimizer)
    optimizer.global_state.wait()
    dist.barrier()
    folder = Path(os.environ["BRAID_CLUSTER_DIR"])
    seen = {}
    if rank == late:
        wait_until(lambda: len(list(folder.glob("went-on-*"))) == late)
    before = digest(training.module.parameters())
    training.step(optimizer)
    if rank != late:
        state = optimizer.global_state
        seen["went on"] = before != digest(training.module.parameters())
        seen["knew more"] = state.done()
        thread = threading.Thread(target=training.step, args=(optimizer,))
        thread.start()
        thread.join(LOOK_S)
        seen["went further"] = not thread.is_alive()
        (folder / f"went-on-{rank}").touch()
        thread.join()
        state.wait()
        seen["knew in the end"] = state.done()
    else:
        training.step(optimizer)
    optimizer.finish()
    return {**seen, "digest": digest(training.module.parameters())}


def wait_until(condition: Any) -> None:
    waiting = threading.Event()
    for _ in range(1200):
        if condition():
            return
        waiting.wait(0.05)
    raise AssertionError("the others do not come")


def resumed() -> list[str]:
    """A run in two halves, and in one."""

    def begin() -> tuple[Training, Any]:
        training = Training()
        return training, braid.torch.DelayedOptimizer(
            training.model.parameters(), "ssd-sgd", lr=0.2, momentum=0.5, warmup_steps=3, pull_every=4
        )

    training, optimizer = begin()
    again, other = begin()
    for _ in range(9):
        training.step(optimizer)
    saved = optimizer.state_dict()
    again.module.load_state_dict(training.module.state_dict())
    other.load_state_dict(saved)
    again.data.set_state(training.data.get_state())
    for one, its in ((training, optimizer), (again, other)):
        for _ in range(9):
            one.step(its)
        its.finish()
    return [digest(each.module.parameters()) for each in (training, again)]


def diloco(**options: Any) -> dict[str, Any]:
    training = Training()
    inner = torch.optim.AdamW(training.model.parameters(), lr=0.01)
    outer = braid.torch.DiLoCo(training.model, inner, 6, **options)
    for _ in range(60):
        training.step(inner)
    outer.finish()
    return training.result()


def post_local(*, wrap: bool) -> dict[str, Any]:
    training = Training(wrap=wrap)
    optimizer = torch.optim.SGD(training.model.parameters(), lr=0.2)
    averaging = braid.torch.PostLocalSGD(optimizer, 4, warmup_steps=5)
    digests = []
    for _ in range(60):
        training.step(optimizer)
        digests.append(digest(training.module.parameters()))
    averaging.finish()
    return {**training.result(), "warm": digests[:5], "apart": digests[-2]}


def main() -> None:
    braid.torch.register()
    dist.init_process_group("braid")
    ranks = {name: on_quadratics("rank", **options) for name, options in METHODS.items()}
    nodes = {name: on_quadratics("node", **options) for name, options in METHODS.items()}
    ways = {
        "synchronous": delayed(warmup_steps=1000),
        "od": delayed(warmup_steps=5),
        "od ddp": delayed(warmup_steps=5, wrap=True),
        "od bf16": delayed(warmup_steps=5, pull="bf16"),
        "ssd": delayed(method="ssd-sgd", warmup_steps=5, pull_every=4),
        "cd": delayed(method="cd-sgd", warmup_steps=5, threshold=0.02),
        "cd all full": delayed(method="cd-sgd", warmup_steps=5, threshold=0.02, correction_every=1),
        "diloco": diloco(),
        "diloco streaming": diloco(fragments=2, overlap_steps=1, alpha=0.25, codec="int4"),
        "post-local": post_local(wrap=False),
        "post-local ddp": post_local(wrap=True),
    }
    report(
        ranks=ranks, nodes=nodes, node=int(os.environ["NODE_RANK"]), ways=ways, blocked=blocked(), resumed=resumed()
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
