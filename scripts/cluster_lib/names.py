# SPDX-License-Identifier: Apache-2.0
"""Who a cluster is: its id, the names made from it, and where its files are.

An id is "<pid>-<start time>" of the tool's process, so anybody can tell whether the owner of a
namespace or a run directory still lives, even after the pid was given to somebody else.
"""

import contextlib
import fcntl
import os
import re
import stat

from .errors import ClusterError

NAMESPACES_DIR = "/run/netns"  # where ip(8) keeps the named ones
_ID = r"(\d+)-(\d+)"


def process_start_time(pid: int) -> int | None:
    """Clock ticks from boot to the start of the process, None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    state = fields[0]
    return None if state in "ZX" else int(fields[19])


def own_id() -> str:
    return f"{os.getpid()}-{process_start_time(os.getpid())}"


def owner_lives(cluster_id: str) -> bool:
    pid, start_time = cluster_id.split("-")
    return process_start_time(int(pid)) == int(start_time)


def namespace(cluster_id: str, part: str) -> str:
    return f"braid-{cluster_id}-{part}"


def id_of_namespace(name: str) -> str | None:
    match = re.fullmatch(rf"braid-({_ID})-(sw|n\d+)", name)
    return match.group(1) if match else None


def namespaces_of(cluster_id: str) -> list[str]:
    return [name for name in all_namespaces() if id_of_namespace(name) == cluster_id]


def all_namespaces() -> list[str]:
    try:
        return sorted(os.listdir(NAMESPACES_DIR))
    except FileNotFoundError:
        return []


def run_directory(cluster_id: str) -> str:
    return os.path.join(base_directory(), cluster_id)


def all_run_directories() -> list[str]:
    """The ids that have a run directory."""
    return [name for name in os.listdir(base_directory()) if re.fullmatch(_ID, name)]


def base_directory() -> str:
    """The directory that holds the run directories of this user, made when missing.

    It is short because a Unix socket's path must fit 107 bytes.
    """
    uid = os.geteuid()
    if uid == 0:
        path = "/run/braid-cluster"
    elif os.path.isdir(os.environ.get("XDG_RUNTIME_DIR", "")):
        path = os.path.join(os.environ["XDG_RUNTIME_DIR"], "braid-cluster")
    else:
        path = f"/tmp/braid-cluster-{uid}"
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.lstat(path)
    except OSError as error:
        raise ClusterError(f"cannot make the run directory {path}: {error.strerror}") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or found.st_mode & 0o022:
        raise ClusterError(
            f"{path} must be a directory that belongs to uid {uid} and that nobody else can write"
        )
    return path


@contextlib.contextmanager
def lock():
    """One cluster at a time is set up or swept away by this user."""
    with open(os.path.join(base_directory(), "lock"), "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
