# SPDX-License-Identifier: Apache-2.0
"""A daemon of this user's own for one run: `braidd --personal`, once for each node, where no other answers.

All that it keeps is in a folder of the run, closed to others, in $XDG_RUNTIME_DIR/braid or /tmp/braid-UID.
The lock in that folder (flock) is held alone by the process that starts the daemon, and shared by each
process that uses it, for as long as the process lives. So exactly one process starts it, and the daemon
notices when the last one has gone, however that ended. It then removes the folder (daemon/personal_life.h).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from braid._library import library
from braid._questions import master
from braid.errors import (
    BraidError,
    DeadlineExceededError,
    PermissionDeniedError,
    UnavailableError,
)

SYSTEM_SOCKET = "/run/braid/braidd.sock"
_SOCKET = "BRAID_SOCKET"
_START_SECONDS = 60.0
_PAUSE_SECONDS = 0.05
_PROBE_SECONDS = 5.0
_LOG_LINES = 3
# The names of braidd's src/config/personal.h.
_NEWS, _LOCK, _KEY, _LOG, _SOCKET_NAME = (
    "braidd.json", "braidd.lock", "cluster.key", "braidd.log", "braidd.sock",
)  # fmt: skip
# What tells a service manager about this process, and not about a daemon that it starts.
_NOT_PASSED_ON = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "STATE_DIRECTORY")

# Locks that this process holds, and the daemons that it has started, until it ends.
_held: list[int] = []
_started: list[subprocess.Popen[bytes]] = []


class Run(NamedTuple):
    """What the nodes of a run have in common: the name of their folders, and the cluster key. Without a
    key, its daemon serves its own node only."""

    name: str
    key: str


def new_run(*, has_several_nodes: bool) -> Run:
    return Run(secrets.token_hex(6), secrets.token_hex(32) if has_several_nodes else "")


def why_needed(*, is_asked_for: bool) -> str | None:
    """Why this node needs a daemon of this user's, for the middle of a sentence; None: it has one that
    the user may use. `is_asked_for`: even so. BRAID_SOCKET then names a personal one that was started
    by hand, if there is one."""
    if os.environ.get(_SOCKET):
        return None
    if is_asked_for:
        return "BRAID_PERSONAL is set"
    reason = _silence(SYSTEM_SOCKET)
    if reason is None:
        return None
    return None if _joins_by_hand() else reason


def join(run: Run, reason: str) -> None:
    """Lets this process use the run's daemon on this node, and starts it if it is the first that comes.

    From then on BRAID_SOCKET names it. BraidError says what is in the way, and what would be right.
    """
    library()  # Without it a daemon is of no use.
    end = time.monotonic() + _START_SECONDS
    folder = f"{_base()}/{run.name}"
    while True:
        lock = _open_lock(folder)
        if lock is not None:
            try:
                if _use(lock, folder, run, reason, end):
                    _held.append(lock)
                    os.environ[_SOCKET] = f"{folder}/{_SOCKET_NAME}"
                    return
            except BaseException:
                os.close(lock)
                raise
            os.close(lock)
        if time.monotonic() > end:
            raise DeadlineExceededError(
                f"the braidd that another process of this run starts on this node was not there within "
                f"{_START_SECONDS:g} s: see {folder}/{_LOG}"
            )
        time.sleep(_PAUSE_SECONDS)


def _joins_by_hand() -> bool:
    """Whether this user has started one by hand, and it answers."""
    folder = _base()
    with contextlib.suppress(OSError):
        if _why_not_own(os.lstat(folder)) is None and _silence(f"{folder}/{_SOCKET_NAME}") is None:
            lock = os.open(f"{folder}/{_LOCK}", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            if _try_lock(lock, fcntl.LOCK_SH) and _is_at(lock, folder):
                _held.append(lock)
                os.environ[_SOCKET] = f"{folder}/{_SOCKET_NAME}"
                return True
            os.close(lock)
    return False


def _use(lock: int, folder: str, run: Run, reason: str, end: float) -> bool:
    """Whether the daemon is there, and this process has its share of the lock. False: look again."""
    if _try_lock(lock, fcntl.LOCK_EX):
        if not _is_at(lock, folder):
            return False
        if _silence(f"{folder}/{_SOCKET_NAME}") is not None:
            _start(folder, run, reason, end)
    # From alone to shared, another process may come in between: if it is the daemon that ends, the
    # lock is no longer the folder's.
    return (
        _try_lock(lock, fcntl.LOCK_SH) and _is_at(lock, folder) and os.path.exists(f"{folder}/{_NEWS}")
    )


def _start(folder: str, run: Run, reason: str, end: float) -> None:
    program = find_program(reason)
    _remove(f"{folder}/{_NEWS}")
    log = os.environ.get("BRAID_DAEMON_LOG") or f"{folder}/{_LOG}"
    command = [program, "--personal", "--folder", folder]
    if run.key:
        _write_key(f"{folder}/{_KEY}", run.key)
        command += ["--set", f"control.cluster_key_file={folder}/{_KEY}"]
    try:
        process = _spawn(command, log)
        try:
            news = _wait_for_news(process, folder, log, end)
        except BaseException:
            process.kill()
            process.wait()
            raise
    except BaseException:
        _clear(folder)
        raise
    # The daemon has read it.
    _remove(f"{folder}/{_KEY}")
    _started.append(process)
    page = f"its page is {news['page']}, " if "page" in news else ""
    print(
        f"braid: {reason}: started one for you on {news['node']} (process {process.pid}): {page}its log "
        f"{log}, its socket {news['socket']}; it ends with this run",
        file=sys.stderr, flush=True,
    )  # fmt: skip


def _spawn(command: list[str], log: str) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
    try:
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UnavailableError(f"the log of the braidd to be started, {log}, cannot be written: {error}") from error
    try:
        # A session of its own: what ends the ranks (Ctrl-C) leaves it time to tell them.
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment,
            cwd="/", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise UnavailableError(f"{command[0]} cannot be started: {error}") from error
    finally:
        os.close(said)


def _wait_for_news(
    process: subprocess.Popen[bytes], folder: str, log: str, end: float
) -> dict[str, str]:
    path = Path(folder, _NEWS)
    while not path.exists():
        code = process.poll()
        if code is not None or time.monotonic() > end:
            how = f"ended with exit code {code}" if code is not None else "did not become ready in time"
            raise UnavailableError(f"{process.args[0]} {how}: {_last_lines(log)}")  # type: ignore[index]
        time.sleep(_PAUSE_SECONDS)
    return json.loads(path.read_text())


def find_program(reason: str) -> str:
    """The braidd to start: BRAID_DAEMON, else that of the package, of the checkout, or of PATH."""
    chosen = os.environ.get("BRAID_DAEMON")
    if chosen:
        # A choice is a choice: falling back to another copy would hide a typing mistake.
        found = shutil.which(chosen)
        if found is None:
            raise UnavailableError(f"BRAID_DAEMON is {chosen}, which is no program: set it to the path of braidd")
        return os.path.abspath(found)
    package = Path(__file__).resolve().parent
    candidates = [package / "bin" / "braidd"]
    checkout = package.parents[1]
    if (checkout / "client" / "include" / "braid.h").exists():
        candidates += [checkout / "build" / preset / "bin" / "braidd" for preset in ("release", "debug")]
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which("braidd")
    if found is not None:
        return os.path.abspath(found)
    raise UnavailableError(
        f"{reason}, and no program braidd to start one: install the package braidd, name the program in "
        f"BRAID_DAEMON, or set BRAID_SOCKET to the socket of a daemon that runs"
    )


def _silence(path: str) -> str | None:
    """Why no daemon answers there, for the middle of a sentence; None: one does, or may."""
    try:
        os.stat(path)
        master(socket_path=path)
        return None
    except (BraidError, OSError):
        pass  # Which of the reasons it is, a connection tells.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_SECONDS)
        try:
            probe.connect(path)
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            return "no braidd on this node"
        except PermissionError:
            return "the braidd of this node is not open to you"
        except OSError:
            return None  # It may be busy. What is wrong with it, the job will say.
    return None


def _base() -> str:
    """The folder of this user's personal daemons, as braidd finds it."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        with contextlib.suppress(OSError):
            if _why_not_own(os.lstat(runtime)) is None:
                return f"{runtime}/braid"
    return f"/tmp/braid-{os.geteuid()}"


def _why_not_own(info: os.stat_result) -> str | None:
    if not stat.S_ISDIR(info.st_mode):
        return "is a link" if stat.S_ISLNK(info.st_mode) else "is a file"
    if info.st_uid != os.geteuid():
        return f"belongs to user {info.st_uid}"
    if info.st_mode & 0o077:
        return f"is open to others (mode {stat.S_IMODE(info.st_mode):04o})"
    return None


def _make_own(folder: str) -> None:
    """Somebody else may have made it before, or a link to one of theirs."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    reason = _why_not_own(os.lstat(folder))
    if reason is not None:
        raise PermissionDeniedError(
            f"{folder}, which is to be the folder of your personal braidd, {reason}: remove it, or set "
            "XDG_RUNTIME_DIR to a folder of yours that is closed to others (mode 0700)"
        )


def _open_lock(folder: str) -> int | None:
    """None: a daemon that ended has taken the folder away meanwhile."""
    try:
        _make_own(os.path.dirname(folder))
        _make_own(folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(f"{folder}/{_LOCK}", flags, 0o600)
    except FileNotFoundError:
        return None
    except PermissionDeniedError:
        raise
    except OSError as error:
        raise UnavailableError(f"the folder of your personal braidd: {error}") from error


def _try_lock(lock: int, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EINTR):
            return False
        raise UnavailableError(f"the lock of your personal braidd: {error}") from error
    return True


def _is_at(lock: int, folder: str) -> bool:
    """Whether the lock is still the folder's."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(lock), os.stat(f"{folder}/{_LOCK}"))
    return False


def _write_key(path: str, key: str) -> None:
    _remove(path)
    made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(made, "w") as file:
        file.write(key + "\n")


def _last_lines(log: str) -> str:
    with contextlib.suppress(OSError):
        lines = Path(log).read_text(errors="replace").splitlines()
        return " / ".join(lines[-_LOG_LINES:]) or "it said nothing"
    return f"its log {log} cannot be read"


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _clear(folder: str) -> None:
    """What a daemon that did not start has left."""
    for name in (_NEWS, _KEY, _LOG, _SOCKET_NAME, _LOCK):
        _remove(f"{folder}/{name}")
    for each in (folder, os.path.dirname(folder)):
        with contextlib.suppress(OSError):
            os.rmdir(each)
