# SPDX-License-Identifier: Apache-2.0
"""Rank 1 is killed in the middle of its work; the others report what they are told."""

from __future__ import annotations

import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from report import report
from torch.nn.parallel import DistributedDataParallel

import braid.torch

VICTIM = 1


def plain(step: int) -> None:
    dist.all_reduce(torch.ones(1000))


def asynchronous(step: int) -> None:
    works = [dist.all_reduce(torch.ones(1000), async_op=True) for _ in range(4)]
    for work in works:
        work.wait()


class Ddp:
    def __init__(self) -> None:
        self.model = DistributedDataParallel(torch.nn.Linear(100, 100))

    def __call__(self, step: int) -> None:
        self.model(torch.ones(4, 100)).sum().backward()


def main() -> None:
    braid.torch.register()
    dist.init_process_group("braid")
    rank = dist.get_rank()
    work = {"plain": lambda: plain, "asynchronous": lambda: asynchronous, "ddp": Ddp}[sys.argv[1]]()
    work(0)
    begun = time.monotonic()
    try:
        for step in range(1, 1000):
            if rank == VICTIM and step == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            work(step)
            begun = time.monotonic()
    except RuntimeError as error:
        seconds = time.monotonic() - begun
        kinds = [kind.__name__ for kind in type(error).__mro__]
        try:
            dist.all_reduce(torch.ones(1))
            again = "no error"
        except dist.DistBackendError as later:
            again = str(later)
        report(kinds=kinds, text=str(error), seconds=seconds, again=again)
    # A sibling that leaves early may have its own departure named to those who fail later.
    time.sleep(1.0)


if __name__ == "__main__":
    main()
