# SPDX-License-Identifier: Apache-2.0
"""The first transfer between two ranks over gloo, which connects them.

gloo does that inside the call, and one of the two ranks waits there until the other one comes. It
does not hear of what happens to the job meanwhile. So the call is made in a thread of its own, and
whoever waits for it looks at the job as well.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from torch.distributed import Work

from braid import BraidError, Job
from braid.torch.failures import as_distributed

_PIECE_SECONDS = 0.2
# Daemons know of a rank's death sooner than this, and gloo may know of it sooner than they.
_NEWS_SECONDS = 2.0


class FirstContacts:
    """Of one rank in one group. Any thread may call."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._met: set[int] = set()

    def start(self, peer: int, transfer: Callable[[], Work]) -> Work:
        """What `transfer` returns or raises; the job's error, if the job fails before it does."""
        if peer in self._met:
            return transfer()
        call = _Call(transfer)
        while not call.ended.wait(_PIECE_SECONDS):
            try:
                self.check()
            except Exception:
                # gloo mostly hears of a death as well. A thread that comes back from C++ while the
                # interpreter ends would abort the process.
                call.ended.wait(_NEWS_SECONDS)
                raise
        if call.error is not None:
            self.explain(call.error)
            raise call.error
        self._met.add(peer)
        return call.work

    def check(self) -> None:
        """Raises what has ended the job, if it has failed."""
        try:
            self._job.check()
        except BraidError as error:
            raise as_distributed(error) from error

    def explain(self, cause: Exception) -> None:
        """A connection that fails says less than the daemons know: raises that, if they do."""
        end = time.monotonic() + _NEWS_SECONDS
        while time.monotonic() < end:
            try:
                self._job.check()
            except BraidError as error:
                raise as_distributed(error) from cause
            time.sleep(_PIECE_SECONDS / 4)


class _Call:
    """A call that may wait longer than whoever wants its result."""

    def __init__(self, transfer: Callable[[], Work]) -> None:
        self.ended = threading.Event()
        self.error: Exception | None = None
        self.work: Work | None = None
        threading.Thread(target=self._run, args=(transfer,), name="braid-contact", daemon=True).start()

    def _run(self, transfer: Callable[[], Work]) -> None:
        try:
            self.work = transfer()
        except Exception as error:
            self.error = error
        self.ended.set()
