# SPDX-License-Identifier: Apache-2.0
"""Runs a few lines of Python as another user's trainer: `neighbour.py SOURCE ARGUMENT`.

As trainer.py, but with nothing that is not in Python and in braid: another user may be unable to
read what is installed for the tests.
"""

import json
import os
import sys
import time  # noqa: F401  for SOURCE
from array import array

import braid


def report(**fields) -> None:
    print("RESULT " + json.dumps(fields), flush=True)


def open_job(name: str, rank: int = 0, world: int = 1, **options) -> braid.Job:
    options = {
        "master_address": os.environ["MASTER_ADDR"],
        "timeout": 60,
        "arena_bytes": 1 << 20,
        **options,
    }
    return braid.Job(name, rank, world, **options)


def sum_of(job: braid.Job, count: int, step: int = 0, tensor: int | None = None) -> float:
    """All-reduces `count` ones and gives the first sum; the result stays in use."""
    if tensor is None:
        tensor = job.register([braid.TensorSpec("stream", dynamic=True)])[0]
    ticket = job.submit(tensor, step, array("f", [1.0]) * count)
    job.wait(ticket)
    return job.result(ticket).cast("f")[0]


def main() -> None:
    source, argument = sys.argv[1:]
    names = {**globals(), "ARGUMENT": json.loads(argument)}
    try:
        exec(compile(source, "<neighbour>", "exec"), names)
    except braid.BraidError as error:
        report(error=error.name, text=str(error))
        sys.exit(3)


if __name__ == "__main__":
    main()
