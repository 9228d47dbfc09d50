# SPDX-License-Identifier: Apache-2.0
"""Sends and receives of the inner gloo group as torch's users get them: as Work objects."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from torch.distributed import DistBackendError, Work

from braid.torch.group.job_watch import JobWatch
from braid.torch.operations.work import WaitedWork, WorkAround

_ZERO = timedelta(0)
_MILLISECOND = timedelta(milliseconds=1)
_GLOO_TIMED_OUT = "Timed out waiting"


class Transfer(WaitedWork):
    """A send or a receive, which may begin later. wait() has the timeout that is given there, or
    else `timeout`.

    `what` names the transfer in errors. `withdraw` is called with a transfer that has timed out before
    it began.
    """

    def __init__(
        self, what: str, peer: int, timeout: timedelta, start: Callable[[], Work],
        watch: JobWatch, withdraw: Callable[[Transfer], None],
    ) -> None:  # fmt: skip
        super().__init__()
        self.peer = peer
        self._what = what
        self._timeout = timeout
        self._start = start
        self._watch = watch
        self._withdraw = withdraw
        self._begun = threading.Event()  # or failed before that
        self._work: Work | None = None
        self._error: Exception | None = None

    def begin(self) -> None:
        self._work = self._start()
        self._begun.set()

    def fail(self, error: Exception) -> None:
        """Before it has begun."""
        self._error = error
        self._begun.set()

    def wait(self, timeout: timedelta | None = None) -> bool:
        asked = timeout if timeout is not None and timeout > _ZERO else self._timeout
        end = time.monotonic() + asked.total_seconds()
        if not self._begun.wait(asked.total_seconds()):
            self._withdraw(self)
            if not self._begun.is_set():
                late = f"rank {self.peer} has not come within {asked.total_seconds():g} s"
                self.fail(timed_out(f"{self._what}: {late}"))
        if self._error is not None:
            raise self._error
        left = timedelta(seconds=end - time.monotonic())
        try:
            return wait_for_gloo(self._work, self._what, asked, max(left, _MILLISECOND))
        except Exception as error:
            self._watch.explain(error)
            raise

    def is_completed(self) -> bool:
        if not self._begun.is_set():
            return False
        return self._error is not None or self._work.is_completed()

    def is_success(self) -> bool:
        return self._begun.is_set() and self._error is None and self._work.is_success()

    def source_rank(self) -> int:
        return self.peer

    _source_rank = source_rank


class AnySourceTransfer(WorkAround):
    """A receive that any rank may answer, so that gloo cannot say which rank's death ends it."""

    def __init__(self, what: str, timeout: timedelta, work: Work, watch: JobWatch) -> None:
        super().__init__(work)
        self._what = what
        self._timeout = timeout
        self._watch = watch

    def wait(self, timeout: timedelta | None = None) -> bool:
        asked = timeout if timeout is not None and timeout > _ZERO else self._timeout
        return self._watch.see_through(lambda: wait_for_gloo(self._work, self._what, asked, asked))


def wait_for_gloo(work: Any, what: str, asked: timedelta, left: timedelta) -> bool:
    """Waits for the rest of what was asked for. A timeout's error names the transfer."""
    try:
        return work.wait(left)
    except RuntimeError as error:
        if _GLOO_TIMED_OUT in str(error):
            late = f"{what}: it has not ended within {asked.total_seconds():g} s"
            raise timed_out(late) from error
        raise


def timed_out(text: str) -> DistBackendError:
    """With the words by which launchers know a timeout."""
    return DistBackendError(f"braid: Timed out waiting: {text}")
