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

# All jobs together; leaving one takes 2 s where the daemon does not answer.
_LEAVE_ALL_SECONDS = 5.0

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
    """Why a job is left, for the other ranks; None while the interpreter goes on."""
    return None if threading.main_thread().is_alive() else _reason()


def _reason() -> bytes:
    # In a child of multiprocessing the exception is still on its way; a script's has been printed.
    kind = sys.exc_info()[0] or getattr(sys, "last_type", None)
    if kind is None or not issubclass(kind, Exception):
        return b"its process has ended"
    return f"its process has ended with an uncaught {kind.__name__}".encode()


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
