# SPDX-License-Identifier: Apache-2.0
"""A thread that sees operations through to their end, in the order of their submission."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any


class CompletionThread:
    """Calls `complete(item)` for every item that is put in. It starts with the first one."""

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
