# SPDX-License-Identifier: Apache-2.0
"""Questions to the daemon, each of which takes one long call of the library."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import NamedTuple

from braid._arguments import milliseconds
from braid._library import library
from braid.errors import error_of

_ADDRESS_BYTES = 256  # These are always enough: see braid.h.
_EXPLANATION_BYTES = 64 << 10
_NAME_BYTES = 256


class Master(NamedTuple):
    """A daemon: where other nodes' daemons reach it (host, or host:port), and its number."""

    address: str
    node: int


def master(*, socket_path: str | None = None, timeout: float | None = None) -> Master:
    """This node's daemon, for `Job(master_address=..., master_node=...)`.

    Rank 0 calls it and passes the answer to all ranks along with the job's name. A loopback address
    means that the daemon serves its own host only. Takes at most `timeout` (10 s).
    """
    address = ctypes.create_string_buffer(_ADDRESS_BYTES)
    node = ctypes.c_uint64()
    path = socket_path.encode() if socket_path else None
    called = library()
    wait_for_answer(
        lambda: called.braid_master(
            path, milliseconds(timeout), address, len(address), ctypes.byref(node)
        )
    )
    return Master(address.value.decode(), node.value)


def explain(name: str, *, socket_path: str | None = None, timeout: float | None = None) -> str:
    """Sentences as `braidctl explain` prints them, about this user's job of that name on this node.

    The job has planned tensors (with PyTorch: DDP). NotFoundError: too few of its steps have ended.
    Takes some seconds, at most `timeout` (10 s).
    """
    text = ctypes.create_string_buffer(_EXPLANATION_BYTES)
    path = socket_path.encode() if socket_path else None
    called = library()
    wait_for_answer(
        lambda: called.braid_explain(path, name.encode(), milliseconds(timeout), text, len(text))
    )
    return text.value.decode(errors="replace")


def name_job(wanted: str, *, socket_path: str | None = None, timeout: float | None = None) -> str:
    """A name for a new job: `wanted`, or with a number behind it ("train-2") where a job on this node is called so.

    For rank 0, which passes it to all ranks. The daemon holds it back until the job is opened, for a minute at
    most. Takes at most `timeout` (10 s).
    """
    name = ctypes.create_string_buffer(_NAME_BYTES)
    path = socket_path.encode() if socket_path else None
    called = library()
    wait_for_answer(
        lambda: called.braid_name_job(path, wanted.encode(), milliseconds(timeout), name, len(name))
    )
    return name.value.decode(errors="replace")


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
