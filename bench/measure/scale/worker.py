# SPDX-License-Identifier: Apache-2.0
"""A trainer that does what bench/scale tells it.

Tasks are {"do": "open" | "register" | "operations" | "steps" | "close", ...}; each is answered with the seconds
from `began` to `ended`, on a clock that all processes of the machine share.
"""

import os
import time

from braid import DType, Job, TensorSpec

from .. import worker

_ELEMENTS = 1000
_ARENA_BYTES = 256 << 20
# The planned tensors' parts have these in turns. A reduction has one dtype, so the parts form groups of several sizes
# however small they are, and planners need several sizes to fit a cost to.
_DTYPES = (DType.FLOAT32, DType.INT32) * 4


class Trainer:
    """One rank of one job."""

    def __init__(self):
        self._job: Job | None = None
        self._single = None
        self._planned = []
        self._next_step = {"operations": 0, "steps": 0}

    def open(self, task: dict) -> None:
        self._job = Job(
            os.environ["BRAID_JOB"],
            int(os.environ["RANK"]),
            int(os.environ["WORLD_SIZE"]),
            master_address=os.environ["MASTER_ADDR"],
            timeout=task["timeout"],
            arena_bytes=_ARENA_BYTES,
        )

    def register(self, task: dict) -> None:
        counts = [_ELEMENTS, *task["counts"]]
        specs = [TensorSpec("single", count=_ELEMENTS)]
        specs += [
            TensorSpec(
                name,
                _DTYPES[order * len(_DTYPES) // len(task["names"])],
                count,
                backward_order=order,
                planned=True,
            )
            for order, (name, count) in enumerate(zip(task["names"], task["counts"], strict=True))
        ]
        # A registration is planned as a whole.
        handles = self._job.register(specs[:1]) + self._job.register(specs[1:])
        self._single, *self._planned = [
            self._job.repeated(handle, self._job.allocate(4 * count))
            for handle, count in zip(handles, counts, strict=True)
        ]

    def operations(self, task: dict) -> None:
        self._repeat("operations", task["count"], [self._single])

    def steps(self, task: dict) -> None:
        self._repeat("steps", task["count"], self._planned)

    def close(self, _: dict) -> None:
        self._job.close()

    def _repeat(self, kind: str, count: int, tensors: list) -> None:
        first = self._next_step[kind]
        self._next_step[kind] += count
        for step in range(first, first + count):
            for ticket in [tensor.submit(step) for tensor in tensors]:
                self._job.wait(ticket)
                self._job.release(ticket)

    def answer(self, task: dict) -> dict:
        began = time.monotonic()
        getattr(self, task["do"])(task)
        return {"began": began, "ended": time.monotonic()}


if __name__ == "__main__":
    worker.serve({"rank": int(os.environ["RANK"])}, Trainer().answer)
