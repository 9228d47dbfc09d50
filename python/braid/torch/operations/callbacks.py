# SPDX-License-Identifier: Apache-2.0
"""Callbacks of futures: the threads that they run on, and what sets their operations apart.

A callback may start operations and wait for them, so it never runs on a thread that completes
operations. And it runs at another moment on every rank, so what it starts cannot be counted along
with what the training thread starts: its operations are counted by themselves, as those of the
operation that it is a callback of (see streams.py).

Callbacks of one operation run one at a time, in the order in which they were given. Those of
different operations run side by side, earlier operations first. A callback may wait for callbacks
of operations that it started: these are one level deeper, and each level has its own threads.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

# Operations of one group whose callbacks start operations share this many streams of the daemon;
# those that share one wait for each other.
SLOTS = 64
# Callbacks of the group's operations are level 0, those of operations that they start level 1.
LEVELS_MAX = 4
_THREADS_PER_LEVEL_MAX = 16

_here = threading.local()


class Origin:
    """An operation as what its callbacks start comes from: the same on all ranks.

    `group` names the sequence of operations in which it is the one with `number`; `path` leads
    through callbacks from there, by how many operations each of them had started before.
    """

    __slots__ = ("group", "number", "path", "started")

    def __init__(self, group: str, number: int, path: tuple[int, ...] = ()) -> None:
        self.group = group
        self.number = number
        self.path = path
        self.started = 0  # By its callbacks, of which one runs at a time.

    @property
    def strand(self) -> tuple[str, int, tuple[int, ...]]:
        """Callbacks with the same one start operations of one stream, and run one at a time."""
        return self.group, self.number % SLOTS, self.path

    def next_child(self) -> Origin:
        """The next operation that its callbacks start."""
        child = Origin(self.group, self.number, (*self.path, self.started))
        self.started += 1
        return child


def current_origin() -> Origin | None:
    """The operation whose callback the calling thread is in; None outside of callbacks."""
    return getattr(_here, "origin", None)


class CallbackThreads:
    """Runs the callbacks of one process group. Threads start when they are needed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._arrivals = itertools.count()
        self._strands: dict[Any, _Strand] = {}
        self._levels = [_Level(self._lock) for _ in range(LEVELS_MAX)]
        self._closing = False

    def run(self, origin: Origin, task: Callable[[], None]) -> None:
        """Runs `task`, which does not raise, as a callback of `origin`: soon, or after close()
        at once."""
        with self._lock:
            if not self._closing:
                self._put(origin, task)
                return
        _run(origin, task)

    def close(self, timeout_seconds: float) -> None:
        """Runs what is there and ends the threads; leaves those that do not end in time."""
        with self._lock:
            self._closing = True
            threads = [thread for level in self._levels for thread in level.threads]
            for level in self._levels:
                level.changed.notify_all()
        end = time.monotonic() + timeout_seconds
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, end - time.monotonic()))

    def _put(self, origin: Origin, task: Callable[[], None]) -> None:
        """Holds the lock."""
        strand = self._strands.get(origin.strand)
        if strand is not None:
            # Links of a chain of callbacks come before what a later operation has.
            heapq.heappush(strand.tasks, (origin.number, next(self._arrivals), origin, task))
            return
        strand = self._strands[origin.strand] = _Strand(origin)
        strand.tasks.append((origin.number, next(self._arrivals), origin, task))
        level = self._levels[min(len(origin.path), LEVELS_MAX - 1)]
        self._make_ready(level, strand)
        if len(level.ready) <= level.idle:
            level.changed.notify()
        elif len(level.threads) < _THREADS_PER_LEVEL_MAX:
            thread = threading.Thread(
                target=self._work, args=(level,), name=self._name, daemon=True
            )
            thread.start()
            level.threads.append(thread)

    def _make_ready(self, level: _Level, strand: _Strand) -> None:
        heapq.heappush(level.ready, (strand.tasks[0][0], next(self._arrivals), strand))

    def _work(self, level: _Level) -> None:
        while True:
            with self._lock:
                while not level.ready:
                    if self._closing:
                        return
                    level.idle += 1
                    level.changed.wait()
                    level.idle -= 1
                strand = heapq.heappop(level.ready)[-1]
                _, _, origin, task = heapq.heappop(strand.tasks)
            _run(origin, task)
            del task  # With all that it holds: this thread may be idle for long.
            with self._lock:
                if strand.tasks:
                    self._make_ready(level, strand)
                else:
                    del self._strands[strand.key]


class _Strand:
    """Callbacks that wait for each other; the one that runs is not among `tasks`."""

    __slots__ = ("key", "tasks")

    def __init__(self, origin: Origin) -> None:
        self.key = origin.strand
        self.tasks: list[tuple[int, int, Origin, Callable[[], None]]] = []


class _Level:
    """The threads for callbacks of one level, and strands of which none runs a callback now."""

    __slots__ = ("changed", "idle", "ready", "threads")

    def __init__(self, lock: threading.Lock) -> None:
        self.changed = threading.Condition(lock)
        self.ready: list[tuple[int, int, _Strand]] = []
        self.threads: list[threading.Thread] = []
        self.idle = 0


def _run(origin: Origin, task: Callable[[], None]) -> None:
    before = current_origin()
    _here.origin = origin
    try:
        task()
    finally:
        _here.origin = before
