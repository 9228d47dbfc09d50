# SPDX-License-Identifier: Apache-2.0
"""Starting, finding and ending the processes of a cluster, and nobody else's."""

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable

# Every process of a cluster inherits this variable. It is how those are found that have left their
# process group and have no parent any more.
MARKER = "BRAID_CLUSTER_ID"

TERMINATE_GRACE_S = 5.0
_POLL_S = 0.02
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def spawn(
    argv: list[str], *, env: dict[str, str], death_signal: int, **options
) -> subprocess.Popen:
    """Starts a process in a session of its own that gets death_signal when this tool dies.

    Call it from the main thread only: the kernel sends the signal when the starting thread ends.
    """
    parent = os.getpid()

    def before_exec():
        _libc.prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
        if os.getppid() != parent:  # the tool died before prctl took effect
            os._exit(127)

    return subprocess.Popen(
        argv,
        env=env,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=before_exec,
        **options,
    )


def exit_code(returncode: int) -> int:
    """As a shell counts: a process killed by a signal has 128 + signal."""
    return returncode if returncode >= 0 else 128 - returncode


def describe_exit(returncode: int) -> str:
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return f"killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"killed by signal {-returncode}"


def members(cluster_id: str) -> list[int]:
    """The living processes that carry the cluster's marker, this one left out."""
    return [
        int(name)
        for name in os.listdir("/proc")
        if name.isdigit() and int(name) != os.getpid() and _is_member(int(name), cluster_id)
    ]


def _is_member(pid: int, cluster_id: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"{MARKER}={cluster_id}".encode() in file.read().split(b"\0")
    except OSError:
        return False


def inhabitants(namespace_paths: Iterable[str]) -> list[int]:
    """The processes in these network namespaces, whatever their environment says."""
    inodes = set()
    for path in namespace_paths:
        with contextlib.suppress(OSError):
            inodes.add((os.stat(path).st_dev, os.stat(path).st_ino))
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and int(name) != os.getpid():
                status = os.stat(f"/proc/{name}/ns/net")
                if (status.st_dev, status.st_ino) in inodes:
                    found.append(int(name))
    return found


def terminate(find: Callable[[], list[int]], grace_s: float = TERMINATE_GRACE_S) -> None:
    """Ends all processes that find() returns: SIGTERM, and SIGKILL after the grace."""
    deadline = time.monotonic() + grace_s
    told: set[int] = set()
    while (pids := find()) and time.monotonic() < deadline:
        for pid in pids:
            if pid not in told:
                told.add(pid)
                _send(pid, signal.SIGTERM, find)
        time.sleep(_POLL_S)
    deadline = time.monotonic() + grace_s
    while (pids := find()) and time.monotonic() < deadline:
        for pid in pids:
            _send(pid, signal.SIGKILL, find)
        time.sleep(_POLL_S)


def _send(pid: int, signal_number: int, find: Callable[[], list[int]]) -> None:
    """The pid descriptor makes sure that the process asked about is the process signalled."""
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(pid)
        try:
            if pid in find():
                signal.pidfd_send_signal(descriptor, signal_number)
        finally:
            os.close(descriptor)


def signal_group(process: subprocess.Popen, signal_number: int) -> None:
    """Signals a spawned process that was not waited for yet, and everything in its group."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal_number)
