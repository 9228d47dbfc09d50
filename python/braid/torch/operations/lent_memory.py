# SPDX-License-Identifier: Apache-2.0
"""Arena memory that goes back when its owner does."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from braid import BraidError, Job, Memory


class LentMemory:
    """Memory of one job that owners hold. They may end at any time, in any thread, under locks."""

    def __init__(self, job: Job, put: Callable[[Any], None]) -> None:
        """`put` has complete() called by another thread, soon; it may be called anywhere."""
        self._job = job
        self._put = put
        self._left: deque[Memory] = deque()

    def take(self, owner: object, nbytes: int) -> Memory:
        """Nothing of it may be in flight when `owner` ends."""
        self.complete()
        memory = self._job.allocate(max(1, nbytes))
        weakref.finalize(owner, self._leave, memory).atexit = False
        return memory

    def complete(self) -> None:
        """Frees what owners have left."""
        while self._left:
            try:
                memory = self._left.popleft()
            except IndexError:
                return  # Another thread was quicker.
            try:
                self._job.free(memory)
            except BraidError:
                pass  # The job is closed, and with it all its memory has gone.

    def _leave(self, memory: Memory) -> None:
        # Neither takes a lock of Python's: a collection of garbage may come where one is held.
        self._left.append(memory)
        self._put(self)
