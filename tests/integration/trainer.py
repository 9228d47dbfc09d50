# SPDX-License-Identifier: Apache-2.0
"""Runs a few lines of Python as one rank: `trainer.py SOURCE ARGUMENT`.

The lines find here what they need; what they report, and the error that ends them, goes to
stdout for real_cluster.Trainer.
"""

import hashlib
import json
import os
import sys
import time

import numpy as np

import braid
from braid import Collective, DType, Reduction, TensorSpec, WorkItem, WorkLoad  # noqa: F401  for SOURCE

EXIT_BRAID_ERROR = 3
RANK = int(os.environ["RANK"])
WORLD = int(os.environ["WORLD_SIZE"])


def say(what: str) -> None:
    print(what, flush=True)


def report(**fields) -> None:
    say("RESULT " + json.dumps({"rank": RANK, **fields}))


def report_error(error: braid.BraidError) -> None:
    report(error=error.name, text=str(error))


def open_job(name: str | None = None, **options) -> braid.Job:
    options = {
        "rank": RANK,
        "world_size": WORLD,
        "master_address": os.environ["MASTER_ADDR"],
        "timeout": 60,
        "arena_bytes": 1 << 30,
        **options,
    }
    return braid.Job(name or os.environ["BRAID_JOB"], **options)


def dynamic(job: braid.Job, name: str = "stream") -> int:
    return job.register([TensorSpec(name, dynamic=True)])[0]


def ended(job: braid.Job, ticket: int) -> bytes:
    """Waits, copies the result out and gives it back."""
    job.wait(ticket)
    result = bytes(job.result(ticket))
    job.release(ticket)
    return result


def digest(*parts: bytes) -> str:
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part)
    return sha.hexdigest()


def sum_forever(job: braid.Job, count: int = 100_000, seconds: float = 600) -> None:
    """All-reduces until an error comes or the test is over; every sum is checked."""
    tensor = job.register([TensorSpec("weights", DType.FLOAT32, count)])[0]
    mine = np.arange(count, dtype=np.float32) % 1000 + job.rank
    expected = (np.arange(count, dtype=np.float32) % 1000) * job.world_size
    expected += job.world_size * (job.world_size - 1) // 2
    end = time.monotonic() + seconds
    step = 0
    while time.monotonic() < end:
        got = np.frombuffer(ended(job, job.submit(tensor, step, mine)), dtype=np.float32)
        if not np.array_equal(got, expected):
            report(wrong=step)
            sys.exit(4)
        if step == 0:
            say("RUNNING")
        step += 1


class StopSign:
    """Ends all ranks at the same step: at the one that the test has written into a file.

    Rank 0 reads it; every few steps an all-reduce of an unplanned tensor tells the others.
    """

    CHECK_STEPS = 5

    def __init__(self, job: braid.Job, path: str):
        self._job, self._path = job, path
        self._tensor = dynamic(job, "stop sign")
        self._end = 0

    def is_reached(self, step: int) -> bool:
        """All ranks ask after each step, counted from 1."""
        if self._end == 0 and step % self.CHECK_STEPS == 0:
            told = np.zeros(1, np.int64)
            if RANK == 0 and os.path.exists(self._path):
                with open(self._path) as file:
                    told[0] = int(file.read())
            ticket = self._job.submit(self._tensor, step, told)
            self._end = int(np.frombuffer(ended(self._job, ticket), np.int64)[0])
        return 0 < self._end <= step


def main() -> None:
    source, argument = sys.argv[1:]
    names = {**globals(), "ARGUMENT": json.loads(argument)}
    try:
        exec(compile(source, "<trainer>", "exec"), names)
    except braid.BraidError as error:
        report_error(error)
        sys.exit(EXIT_BRAID_ERROR)


if __name__ == "__main__":
    main()
