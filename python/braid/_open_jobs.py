# SPDX-License-Identifier: Apache-2.0
"""Leaves the jobs that are still open when the interpreter ends in order.

Scripts end without closing what they have opened. To the other ranks that would be a death, which
fails their job although nobody may need this rank any more.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
import weakref
from opcode import opmap

# All jobs together; leaving one takes 2 s where the daemon does not answer.
_LEAVE_ALL_SECONDS = 5.0

_TEXT_CHARACTERS_MAX = 1000
_RAISE = opmap["RAISE_VARARGS"]

# By handle. No lock: a forked child would inherit it as it is. The handles that it inherits are
# refused by libbraid.
_open_jobs: dict[int, ctypes.CDLL] = {}
_child_pid = 0  # of the child of multiprocessing whose end is known of


def add_open_job(handle: int, library: ctypes.CDLL) -> None:
    _open_jobs[handle] = library
    _leave_at_end_of_child()


def remove_open_job(handle: int) -> bool:
    """False: leave_open_jobs() has it, at this moment perhaps."""
    return _open_jobs.pop(handle, None) is not None


def leave_open_jobs() -> None:
    """Frees nothing: other threads may be inside calls on these jobs."""
    end = time.monotonic() + _LEAVE_ALL_SECONDS
    while _open_jobs and time.monotonic() < end:
        handle, library = _open_jobs.popitem()
        library.braid_leave(handle, _reason())


def reason_of_end() -> bytes | None:
    """Why a job is left, for the other ranks; None where the interpreter goes on and all is well."""
    if not threading.main_thread().is_alive():
        return _reason()
    error = sys.exc_info()[1]  # A `with` or a `finally` ends with it, perhaps.
    words = _own_words(error) if isinstance(error, Exception) else ""
    return f"it has met {type(error).__name__}{words}".encode() if words else None


def _reason() -> bytes:
    # In a child of multiprocessing the exception is still on its way; a script's has been printed.
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    if not isinstance(error, Exception):
        return b"its process has ended"
    kind = type(error).__name__
    return f"its process has ended with an uncaught {kind}{_own_words(error)}".encode()


def _own_words(error: Exception) -> str:
    """The text of an error that a `raise` of this package has made: of others' errors the kind is
    enough to travel."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] != "braid":
        return ""
    if trace.tb_frame.f_code.co_code[trace.tb_lasti] != _RAISE:
        return ""
    return f": {' '.join(str(error).split())}"[:_TEXT_CHARACTERS_MAX]


def _leave_at_end_of_child() -> None:
    """Forked children of multiprocessing end by os._exit and run finalizers of their own only."""
    global _child_pid
    processes = sys.modules.get("multiprocessing.process")
    if processes is None or processes.parent_process() is None or _child_pid == os.getpid():
        return
    from multiprocessing.util import Finalize

    Finalize(None, leave_open_jobs, exitpriority=0)
    _child_pid = os.getpid()


class _End:
    """What is finalized at exit comes in the reverse order of its making: this one after whatever
    uses jobs and was made later, as process groups."""


_end = _End()
weakref.finalize(_end, leave_open_jobs)
