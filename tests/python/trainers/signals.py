# SPDX-License-Identifier: Apache-2.0
"""Each wait for a rank that is late, which a signal's handler lets go on: the other rank comes when it has run.

`signals.py FOLDER`. The two ranks take turns in being late. So where handlers do not run in a wait, the run hangs
until the late rank gives up.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from report import report
from signalled import with_signal

import braid
import braid.torch

RANK = int(os.environ["RANK"])
PATIENCE_S = 120  # of the late rank
WAITS: dict[str, Callable[[], Any]] = {}


class Late:
    """The place where one wait's handler says that it has run."""

    def __init__(self, folder: str, name: str) -> None:
        self._file = Path(folder) / name.replace(" ", "_")
        self._name = name

    def say(self, *_: Any) -> None:
        self._file.touch()

    def wait(self) -> None:
        end = time.monotonic() + PATIENCE_S
        while not self._file.exists():
            if time.monotonic() > end:
                raise TimeoutError(f"{self._name}: the handler has not run")
            time.sleep(0.01)


def run(folder: str, name: str, wait: Callable[[], Any]) -> None:
    for waiter in range(2):
        late = Late(folder, f"{name} {waiter}")
        if RANK == waiter:
            with_signal(late.say, wait)
        else:
            late.wait()
            wait()


def is_wait(function: Callable[[], Any]) -> Callable[[], Any]:
    WAITS[function.__name__.replace("_", " ")] = function
    return function


@is_wait
def new_group() -> None:
    dist.destroy_process_group(dist.new_group([0, 1]))


@is_wait
def barrier() -> None:
    dist.barrier()


@is_wait
def monitored_barrier() -> None:
    dist.monitored_barrier()


@is_wait
def all_reduce() -> None:
    dist.all_reduce(torch.ones(10))


@is_wait
def work() -> None:
    dist.all_reduce(torch.ones(10), async_op=True).wait()


@is_wait
def work_with_timeout() -> None:
    dist.all_reduce(torch.ones(10), async_op=True).wait(timedelta(seconds=PATIENCE_S))


@is_wait
def future() -> None:
    dist.all_reduce(torch.ones(10), async_op=True).get_future().wait()


@is_wait
def future_of_a_callback() -> None:
    dist.all_reduce(torch.ones(10), async_op=True).get_future().then(lambda f: f.value()).wait()


@is_wait
def objects() -> None:
    dist.all_gather_object([None, None], {"some": "object"})


def plain_wait(job: braid.Job) -> Callable[[], None]:
    tensor = job.register([braid.TensorSpec("some", count=4)])[0]
    steps = iter(range(100))

    def wait() -> None:
        ticket = job.submit(tensor, next(steps), bytearray(16))
        job.wait(ticket)
        job.release(ticket)

    return wait


def sharded_wait() -> Callable[[], None]:
    model = torch.nn.Linear(10, 10)
    optimizer = braid.torch.ShardedOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)

    def wait() -> None:
        model(torch.ones(2, 10)).sum().backward()
        optimizer.step()
        optimizer.synchronize()

    return wait


class Preempted(BaseException):
    pass


def raise_preempted(*_: Any) -> None:
    raise Preempted


def given_up(folder: str, open_job: Callable[..., braid.Job]) -> None:
    """A handler that raises ends the attempt, and others may follow."""
    late = Late(folder, "given up")
    if RANK == 0:
        try:
            with_signal(raise_preempted, lambda: open_job("given up"))
        except Preempted:
            late.say()
    else:
        late.wait()
    open_job("another").close()


def main() -> None:
    folder = sys.argv[1]
    braid.torch.register()
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), 2, RANK == 0)
    made = iter(range(100))

    def open_job(name: str = "") -> braid.Job:
        master = os.environ["MASTER_ADDR"]
        return braid.Job(name or f"plain{next(made)}", RANK, 2, master_address=master, timeout=PATIENCE_S * 2)

    def init() -> None:
        if dist.is_initialized():
            dist.destroy_process_group()
        dist.init_process_group("braid", store=store, rank=RANK, world_size=2)

    run(folder, "Job", lambda: open_job().close())
    given_up(folder, open_job)
    run(folder, "init_process_group", init)
    for name, wait in WAITS.items():
        run(folder, name, wait)
    job = open_job()
    run(folder, "Job.wait", plain_wait(job))
    job.close()
    run(folder, "sharded optimizer", sharded_wait())
    dist.destroy_process_group()
    report(waits=2 * (len(WAITS) + 4) + 1)


if __name__ == "__main__":
    main()
