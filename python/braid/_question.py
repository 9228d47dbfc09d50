# SPDX-License-Identifier: Apache-2.0
"""Questions to the daemon that take one long call of the library."""

from __future__ import annotations

import threading
from collections.abc import Callable

from braid._library import library
from braid.errors import error_of


class _Question(threading.Thread):
    """Asks and waits. Whoever is interrupted may leave it alone: it ends by itself."""

    def __init__(self, ask: Callable[[], int]) -> None:
        super().__init__(name="braid-question", daemon=True)
        self._library = library()
        self._ask = ask
        self.error: Exception | None = None

    def run(self) -> None:
        code = self._ask()
        if code:
            message = self._library.braid_error_message().decode(errors="replace")
            self.error = error_of(code, message)


def wait_for_answer(ask: Callable[[], int]) -> None:
    """Calls `ask`, a function of the library, and raises its error.

    On another thread, for handlers of signals do not run during a call of the library.
    """
    question = _Question(ask)
    question.start()
    question.join()
    if question.error is not None:
        raise question.error
