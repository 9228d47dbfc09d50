# SPDX-License-Identifier: Apache-2.0
"""Running scripts/cluster from a test, and looking at what it makes and leaves."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest
from braid_build import ran

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CLUSTER = str(REPOSITORY / "scripts" / "cluster")
NAMESPACES = pathlib.Path("/run/netns")
DEADLINE_S = 60
EXIT_TOOL_FAILED = 125

# Says who it is, then waits to be stopped.
WAIT = """
import os, time
print(os.getpid(), os.environ["BRAID_CLUSTER_DIR"], flush=True)
time.sleep(600)
"""


def namespaces_refused() -> str | None:
    name = f"braid-probe-{os.getpid()}"
    try:
        done = ran(["ip", "netns", "add", name])
    except FileNotFoundError:
        return "ip(8) is not installed"
    if done.returncode != 0:
        return f"network namespaces are not allowed here: {done.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return None


REFUSED = namespaces_refused()
needs_namespaces = pytest.mark.skipif(REFUSED is not None, reason=str(REFUSED))
# What the tests below are about must hold in both modes; each runs wherever its mode can.
both_modes = pytest.mark.parametrize(
    "mode",
    [
        pytest.param([], marks=needs_namespaces, id="namespaces"),
        pytest.param(["--loopback"], id="loopback"),
    ],
)


def cluster(*arguments: str, prefix: tuple = (), **options) -> subprocess.CompletedProcess:
    return ran([*prefix, CLUSTER, "--no-daemons", *arguments], **options)


def python(source: str) -> list[str]:
    return ["--", sys.executable, "-c", source]


def by_rank(output: str) -> dict[int, list[str]]:
    lines: dict[int, list[str]] = {}
    for line in output.splitlines():
        rank, _, text = line.removeprefix("[").partition("] ")
        lines.setdefault(int(rank), []).append(text)
    return lines


def namespaces_of(cluster_id: str) -> list[str]:
    return [p.name for p in NAMESPACES.glob(f"braid-{cluster_id}-*")] if NAMESPACES.exists() else []


def eventually(condition) -> bool:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


class Running:
    """A cluster whose ranks wait, and what must be gone when it is."""

    def __init__(self, *arguments: str):
        command = [CLUSTER, "--no-daemons", "--nodes", "2", *arguments, *python(WAIT)]
        self.tool = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.pids = []
        for _ in range(2):
            _, pid, directory = self.tool.stdout.readline().split()
            self.pids.append(int(pid))
        self.directory = pathlib.Path(directory)
        self.state = json.loads((self.directory / "cluster.json").read_text())

    def reaper(self) -> int:
        tool = self.tool.pid
        for child in pathlib.Path(f"/proc/{tool}/task/{tool}/children").read_text().split():
            if b"cluster_lib.reaper" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
        raise AssertionError("the tool has no reaper")

    def is_gone(self) -> bool:
        alive = [pid for pid in self.pids if is_running(pid)]
        return not alive and not self.directory.exists() and not namespaces_of(self.state["id"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tool.terminate()  # nothing happens to one that has ended
        self.tool.communicate(timeout=DEADLINE_S)


def is_running(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def without_namespaces() -> tuple:
    """What to put in front of a command so that it may not make namespaces."""
    if REFUSED is not None:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv(1) is not installed: cannot give up CAP_SYS_ADMIN")
    return ("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin")
