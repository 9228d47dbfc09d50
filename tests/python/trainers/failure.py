# SPDX-License-Identifier: Apache-2.0
"""Rank 1 is killed in the middle of its work, or raises, or asks for what cannot be; the others report what they are
told: `failure.py WORK [nobody | raise | refused [destroy]]`. With `nobody` it is something else that fails."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from report import report
from torch.nn.parallel import DistributedDataParallel

import braid.torch

VICTIM, LAST_STEP = 1, 5


def plain(step: int) -> None:
    dist.all_reduce(torch.ones(1000))


def asynchronous(step: int) -> None:
    works = [dist.all_reduce(torch.ones(1000), async_op=True) for _ in range(4)]
    for work in works:
        work.wait()


class InPieces:
    """A large tensor, of which the victim gives some pieces."""

    def __init__(self) -> None:
        self.tensor = torch.ones(5_000_000)

    def __call__(self, step: int) -> None:
        if step == LAST_STEP:
            job = dist.distributed_c10d._get_default_group().engine.job
            submit = job.submit_raw
            given = iter((submit, submit))

            def submit_some(*arguments: Any) -> int:
                return next(given, end_victim)(*arguments) or submit(*arguments)

            job.submit_raw = submit_some
        dist.all_reduce(self.tensor)


class Ddp:
    def __init__(self) -> None:
        self.model = DistributedDataParallel(torch.nn.Linear(100, 100))

    def __call__(self, step: int) -> None:
        self.model(torch.ones(4, 100)).sum().backward()


class Updated:
    """Weights that the daemons update."""

    def __init__(self, make: Any) -> None:
        self.model = torch.nn.Linear(100, 100)
        self.optimizer = make(self.model.parameters())

    def __call__(self, step: int) -> None:
        self.model(torch.ones(4, 100)).sum().backward()
        self.optimizer.step()


def sharded() -> Updated:
    return Updated(lambda p: braid.torch.ShardedOptimizer(p, torch.optim.AdamW))


class HalfSubmitted:
    """Something goes to the daemons during the backward pass, in the middle of which the victim ends."""

    def __init__(self, make: Any) -> None:
        """`make` gives what is stepped for a model: an optimizer, or a KFAC."""
        self.layers = torch.nn.ModuleList(torch.nn.Linear(100, 100) for _ in range(3))
        self.stepped = make(self.layers)

    def __call__(self, step: int) -> None:
        first, second, third = self.layers
        values = first(torch.ones(4, 100))
        if step == LAST_STEP:
            values.register_hook(end_victim)
        third(second(values)).sum().backward()
        self.stepped.step()


def half_submitted() -> HalfSubmitted:
    """Gradients."""
    return HalfSubmitted(
        lambda layers: braid.torch.ShardedOptimizer(
            layers.parameters(), torch.optim.AdamW, overlap_backward=True
        )
    )


def half_submitted_factors() -> HalfSubmitted:
    return HalfSubmitted(braid.torch.KFAC)


def acco() -> Updated:
    return Updated(lambda p: braid.torch.Acco(p, torch.optim.AdamW))


def delayed() -> Updated:
    return Updated(lambda p: braid.torch.DelayedOptimizer(p, lr=0.1, warmup_steps=0))


def end_victim(*_: Any) -> None:
    if dist.get_rank() == VICTIM and sys.argv[2:] != ["nobody"]:
        if sys.argv[2:] == ["raise"]:
            raise KeyError("of the script")
        if sys.argv[2:3] == ["refused"]:
            dist.all_gather_into_tensor(torch.empty(3), torch.empty(2))
        os.kill(os.getpid(), signal.SIGKILL)


def stay_for_the_others(rank: int) -> None:
    """A sibling that leaves early may have its own departure named to those who fail later."""
    folder = Path(os.environ["BRAID_CLUSTER_DIR"])
    (folder / f"told-{rank}").touch()
    end = time.monotonic() + 60
    while len(list(folder.glob("told-*"))) < dist.get_world_size() - 1 and time.monotonic() < end:
        time.sleep(0.05)


def main() -> None:
    braid.torch.register()
    dist.init_process_group("braid")
    rank = dist.get_rank()
    work = {
        "plain": lambda: plain,
        "asynchronous": lambda: asynchronous,
        "in pieces": InPieces,
        "ddp": Ddp,
        "sharded": sharded,
        "half submitted": half_submitted,
        "half submitted factors": half_submitted_factors,
        "acco": acco,
        "delayed": delayed,
    }[sys.argv[1]]()
    work(0)
    try:
        for step in range(1, 1000):
            if step == LAST_STEP and not sys.argv[1].startswith(("half submitted", "in pieces")):
                end_victim()
            work(step)
    except RuntimeError as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        try:
            dist.all_reduce(torch.ones(1))
            again = "no error"
        except dist.DistBackendError as later:
            again = str(later)
        report(kinds=kinds, text=str(error), again=again)
        stay_for_the_others(rank)


if __name__ == "__main__":
    try:
        main()
    finally:
        if sys.argv[3:] == ["destroy"]:
            dist.destroy_process_group()
