# SPDX-License-Identifier: Apache-2.0
"""What waits for other ranks without an operation of braid's, and still hears that the job has failed.

gloo waits inside its calls and works until its timeout, for a rank too that died before the two
were connected.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from braid import BraidError, Job
from braid.torch.operations.failures import as_distributed

PIECE_SECONDS = 0.2
# Daemons know of a rank's death sooner than this, and gloo may know of it sooner than they.
_NEWS_SECONDS = 2.0


class JobWatch:
    """Watches one job for one rank. Any thread may call."""

    def __init__(self, job: Job) -> None:
        self._job = job

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
            time.sleep(PIECE_SECONDS / 4)

    def see_through(self, function: Callable[[], Any]) -> Any:
        """What `function` returns or raises; the job's error, if the job fails before it does."""
        call = _Call(function)
        while not call.ended.wait(PIECE_SECONDS):
            try:
                self.check()
            except Exception:
                # gloo mostly hears of a death as well, and what has come counts. A thread that comes
                # back from C++ while the interpreter ends would abort the process.
                if call.ended.wait(_NEWS_SECONDS) and call.error is None:
                    break
                raise
        if call.error is not None:
            self.explain(call.error)
            raise call.error
        return call.result


class _Call:
    """A call that may take longer than its caller can wait."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.ended = threading.Event()
        self.error: Exception | None = None
        self.result: Any = None
        threading.Thread(target=self._run, args=(function,), name="braid-gloo-call", daemon=True).start()

    def _run(self, function: Callable[[], Any]) -> None:
        try:
            self.result = function()
        except Exception as error:
            self.error = error
        self.ended.set()
