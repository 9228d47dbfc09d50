# SPDX-License-Identifier: Apache-2.0
"""Signals as events: a handler only notes them, the tool acts where it can clean up."""

import os
import select
import signal

from .errors import Interrupted

_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Install once, from the main thread. `descriptor` is readable after any signal."""

    def __init__(self):
        self._stop: int | None = None
        self.descriptor, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        for number in _STOP:
            signal.signal(number, self._note)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)  # wakes the waits below

    def _note(self, number: int, frame) -> None:
        self._stop = self._stop or number

    def check(self) -> None:
        """Raises Interrupted if the tool was asked to stop."""
        if self._stop is not None:
            raise Interrupted(self._stop)

    def drain(self) -> None:
        try:
            while os.read(self.descriptor, 4096):
                pass
        except BlockingIOError:
            pass

    def wait(self, seconds: float) -> None:
        """Sleeps until a signal comes, the end of a child included, or the time is over."""
        select.select([self.descriptor], [], [], seconds)
        self.drain()
        self.check()

    def close_door(self) -> None:
        """From here on the tool only cleans up, and further requests to stop change nothing."""
        for number in _STOP:
            signal.signal(number, signal.SIG_IGN)
