# SPDX-License-Identifier: Apache-2.0
"""One rank of small trainings in which gradients travel as two thin matrices, and of the same one without."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from report import digest, report
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import braid.torch

STEPS = 30
# With one input for each rank and step, a gradient is the sum of as few outer products as there are ranks.
ENOUGH = {"*": "powersgd:rank=8"}


class Interrupted(Exception):
    pass


class Training:
    """A model whose gradients have many buckets, and its losses."""

    def __init__(self, codecs: dict[str, str], inputs: int) -> None:
        torch.manual_seed(7)
        self.module = torch.nn.Sequential(
            torch.nn.Linear(48, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 48)
        )
        if codecs:
            braid.torch.set_codec(self.module, codecs)
        self.state = braid.torch.DDPHookState(self.module)
        self.wrap()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5 if inputs == 1 else 3)
        self.target = torch.randn(48, 48) / 7
        self.data = torch.Generator().manual_seed(100 + dist.get_rank())
        self.inputs = inputs
        self.losses: list[float] = []
        self.skipped = 0

    def wrap(self) -> None:
        self.model = DistributedDataParallel(self.module, bucket_cap_mb=0.002)
        self.model.register_comm_hook(self.state, braid.torch.ddp_hook)

    def backward(self, factor: float = 1) -> None:
        inputs = torch.randn(self.inputs, 48, generator=self.data)
        loss = functional.mse_loss(self.model(inputs), inputs @ self.target)
        (loss * factor).backward()
        self.losses.append(loss.item())

    def step(self, factor: float = 1) -> None:
        """Leaves out a step whose gradients are not finite, as a scaler of losses does."""
        self.optimizer.zero_grad()
        self.backward(factor)
        if all(bool(parameter.grad.isfinite().all()) for parameter in self.model.parameters()):
            self.optimizer.step()
        else:
            self.skipped += 1

    def accumulating_step(self) -> None:
        self.optimizer.zero_grad()
        with self.model.no_sync():
            self.backward(0.5)
        self.backward(0.5)
        self.optimizer.step()

    def abandoned_step(self) -> None:
        def interrupt(*_: Any) -> None:
            raise Interrupted

        handle = self.module[2].register_full_backward_hook(interrupt)
        try:
            self.backward()
            raise AssertionError("the backward pass went through")
        except Interrupted:
            pass
        handle.remove()

    def result(self) -> dict[str, Any]:
        return {
            "losses": self.losses,
            "digest": digest(self.model.parameters()),
            "skipped": self.skipped,
        }


def train(codecs: dict[str, str], inputs: int = 16) -> dict[str, Any]:
    training = Training(codecs, inputs)
    for _ in range(STEPS):
        training.step()
    return training.result()


def accumulated() -> dict[str, Any]:
    training = Training({"*": "powersgd:rank=4"}, 16)
    for _ in range(STEPS):
        training.accumulating_step()
    return training.result()


def poisoned() -> dict[str, Any]:
    """One rank's gradients overflow once."""
    training = Training({"*": "powersgd:rank=4"}, 16)
    for step in range(STEPS):
        training.step(float("inf") if step == 6 and dist.get_rank() == 1 else 1)
    return training.result()


def abandoned() -> dict[str, Any]:
    """A backward pass ends in the middle on all ranks. DDP refuses to go on; a new one may, with the same gradients."""
    training = Training({"*": "powersgd:rank=4"}, 16)
    for _ in range(6):
        training.step()
    training.abandoned_step()
    training.wrap()
    for _ in range(STEPS):
        training.step()
    assert training.state._gradients is not None
    return training.result()


def main() -> None:
    braid.torch.register()
    dist.init_process_group("braid")
    ways = {
        "plain": train({}, inputs=1),
        "enough": train(ENOUGH, inputs=1),
        "few": train({"*": "powersgd:rank=1"}),
        "some": train({"*": "bf16", "*.weight": "powersgd", "4.weight": "int8"}),
        "accumulated": accumulated(),
        "poisoned": poisoned(),
        "abandoned": abandoned(),
    }
    report(ways=ways)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
