# SPDX-License-Identifier: Apache-2.0
"""Collectives of the inner gloo group. They end with gloo, or with the job if that fails first.

gloo waits until its timeout for a rank that died before the two were connected, and for one behind
such a rank; for a rank that has not come it waits five times as long. So a thread waits for gloo in
pieces, and looks at the job and at the time in between.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from torch.distributed import DistBackendError, Work

from braid.torch.group.job_watch import PIECE_SECONDS, JobWatch
from braid.torch.operations.callbacks import CallbackThreads, Origin, current_origin
from braid.torch.operations.completion import CompletionThread
from braid.torch.operations.failures import timed_out
from braid.torch.operations.work import BraidWork

_JOIN_SECONDS = 10.0
_PIECE = timedelta(seconds=PIECE_SECONDS)
_MOMENT = timedelta(milliseconds=1)
_NO_TYPE = "Invalid scalar type"
_REFUSED_TYPE = (
    "{what}: neither braid nor gloo reduces this type; both reduce float32, float64, float16, bfloat16, "
    "int32, int64 and uint8, and gloo int8"
)


class _Started(NamedTuple):
    """A collective that is under way, and what has to stay until it ends."""

    what: str
    timeout: timedelta
    begun: Work
    work: BraidWork
    value: Any


class GlooCollectives:
    """Collectives of one gloo group that are under way. Any thread may call."""

    def __init__(self, watch: JobWatch, callbacks: CallbackThreads, job: str) -> None:
        self._watch = watch
        self._callbacks = callbacks
        self._sequence = f"{job} over gloo"
        self._lock = threading.Lock()
        self._number = 0
        self._thread = CompletionThread("braid-gloo", self._complete)
        self._is_closing = False
        # Given up, but gloo has not said that they are over.
        self._given_up: list[_Started] = []

    def start(
        self, what: str, value: Any, timeout: timedelta, begin: Callable[[], Work]
    ) -> BraidWork:
        """What `begin` starts, as a work with the result `value`. `what` names it in errors. Its time
        begins when those before it have ended."""
        work = BraidWork(value)
        with self._lock:
            begun = begin()
            parent = current_origin()
            if parent is None:
                origin = Origin(self._sequence, self._number)
                self._number += 1
            else:
                origin = parent.next_child()
            work.comes_from(origin, self._callbacks)
            self._thread.start()
            self._thread.put(_Started(what, timeout, begun, work, value))
        return work

    def close(self, group: Any) -> None:
        """Before the group goes, whose end waits for what gloo has not done."""
        if not self._thread.close(_JOIN_SECONDS):
            self._is_closing = True
            self._thread.close(_JOIN_SECONDS)
        if self._given_up:
            # These and what they work on stay: tensors may not end on gloo's threads.
            for kept in (group, self._given_up):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))

    def _complete(self, started: _Started) -> None:
        error: Exception | None = None
        try:
            self._wait_for(started)
        except Exception as cause:
            error = cause
            if not started.begun.is_completed():
                self._given_up.append(started)
        started.work.finish(error)

    def _wait_for(self, started: _Started) -> None:
        """Raises gloo's error, or what makes it pointless to wait."""
        seconds = started.timeout.total_seconds()
        end = time.monotonic() + seconds
        while not self._ends_soon(started):
            self._watch.check()
            if time.monotonic() > end:
                raise timed_out(f"{started.what}: it has not ended within {seconds:g} s")
            if self._is_closing:
                raise DistBackendError("the process group was destroyed while gloo was at work")

    def _ends_soon(self, started: _Started) -> bool:
        try:
            return bool(started.begun.wait(_MOMENT if self._given_up else _PIECE))
        except Exception:
            if not started.begun.is_completed():
                return False
        try:
            return bool(started.begun.wait())
        except Exception as error:
            if _NO_TYPE in str(error):
                raise TypeError(_REFUSED_TYPE.format(what=started.what)) from error
            self._watch.explain(error)
            raise
