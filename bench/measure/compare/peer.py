# SPDX-License-Identifier: Apache-2.0
"""A rank of a system whose processes stay up. Needs nothing but Python, so that every peer's interpreter can run it."""

import time
from collections.abc import Callable

from .. import worker
from .cases import Case


class Peer:
    """What a system must be able to do; one process, one rank."""

    rank = 0
    size = 1
    versions: dict[str, str] = {}
    _run: Callable[[], object]

    def prepare(self, case: Case) -> Callable[[], object]:
        """Makes the buffers, does it once to see that the result is right, and returns what does it again."""
        raise NotImplementedError

    def barrier(self) -> None:
        raise NotImplementedError

    def serve(self) -> None:
        worker.serve({"rank": self.rank, "versions": self.versions}, self._answer)

    def _answer(self, task: dict) -> dict:
        """What each iteration took; of the case before, unless there is another one."""
        if "case" in task:
            self._run = self.prepare(Case(**task["case"]))
        seconds = []
        for _ in range(task["iterations"]):
            self.barrier()
            start = time.perf_counter()
            self._run()
            seconds.append(time.perf_counter() - start)
        return {"seconds": seconds}
