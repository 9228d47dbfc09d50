# SPDX-License-Identifier: Apache-2.0
"""Questions to the daemon that take one long call of the library."""

from __future__ import annotations

import threading
from collections.abc import Callable

from braid._library import library
from braid.errors import error_of


class _Question(threading.Thread):
    """Asks and waits. A caller that is interrupted may leave it alone: it ends by itself."""

    def __init__(self, ask: Callable[[], int]) -> None:
        super().__init__(name="braid-question", daemon=True)
        self._library = library()
        self._ask = ask
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            code = self._ask()
        except Exception as error:
            self.error = error
            return
        if code:
            message = self._library.braid_error_message().decode(errors="replace")
            self.error = error_of(code, message)


def wait_for_answer(ask: Callable[[], int]) -> None:
    """Calls `ask`, a function of the library, and raises its error.

    Handlers of signals run on the main thread, and not during a call of the library: for the main
    thread another one makes the call.
    """
    question = _Question(ask)
    main = threading.main_thread()
    try:
        # At the end of the interpreter the main thread counts as ended, and no thread may start.
        if threading.current_thread() is main and main.is_alive():
            question.start()
    except RuntimeError:
        pass  # This user may have no more threads.
    if question.ident is None:
        question.run()
    else:
        question.join()
    if question.error is not None:
        raise question.error
