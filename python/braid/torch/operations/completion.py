# SPDX-License-Identifier: Apache-2.0
"""Threads that see operations through to their end. They run no callbacks of scripts."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

# How long one operation is waited for before the others are looked at.
_LOOK_MS = 2


class CompletionThread:
    """Calls `complete(item)` for every item that is put in, in that order."""

    def __init__(self, name: str, complete: Callable[[Any], None]) -> None:
        self._name = name
        self._complete = complete
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        # Putting is on the trainer's path, so it is the queue's own method.
        self.put = self._queue.put

    def start(self) -> None:
        """Before the first put. A second call does nothing."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                thread.start()
                self._thread = thread

    def close(self, timeout_seconds: float) -> bool:
        """Ends the thread after what was put in before; False if it did not end in time."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        self._queue.put(None)
        thread.join(timeout_seconds)
        return not thread.is_alive()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            self._complete(item)


class AnyOrderThread(CompletionThread):
    """The same, but `complete(item)` is called when the item has ended: for ends in any order."""

    def __init__(
        self, name: str, complete: Callable[[Any], None], has_ended: Callable[[Any, int], bool]
    ) -> None:
        """`has_ended(item, timeout_ms)` waits that long at most."""
        super().__init__(name, complete)
        self._has_ended = has_ended

    def _run(self) -> None:
        started: list[Any] = []
        closing = False
        while started or not closing:
            while not closing and not (started and self._queue.empty()):
                item = self._queue.get()
                closing = item is None
                if not closing:
                    started.append(item)
            # The first is likely to be the first to end, so the wait is for that.
            still = []
            for place, item in enumerate(started):
                if self._has_ended(item, 0 if place else _LOOK_MS):
                    self._complete(item)
                else:
                    still.append(item)
            started = still
