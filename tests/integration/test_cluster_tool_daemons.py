# SPDX-License-Identifier: Apache-2.0
"""scripts/cluster with the daemons of this build."""

import json
import pathlib
import signal
import subprocess
import sys

import pytest
from cluster_tool import CLUSTER, DEADLINE_S, REPOSITORY, both_modes, by_rank

pytestmark = pytest.mark.skipif(
    not list(REPOSITORY.glob("build/*/bin/braidd")), reason="braidd is not built"
)

CONNECT = """
import os, socket
socket.socket(socket.AF_UNIX).connect(os.environ["BRAID_SOCKET"])
print("connected")
"""
# Rank 0 kills the daemon of node 1 and waits until the tool, its parent, has seen it end.
KILL_DAEMON = """
import json, os, pathlib, signal, time
if os.environ["RANK"] == "0":
    with open(os.environ["BRAID_CLUSTER_DIR"] + "/cluster.json") as file:
        pid = json.load(file)["nodes"][1]["daemon_pid"]
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while pathlib.Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
"""


def cluster(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [CLUSTER, *arguments], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


@both_modes
def test_every_rank_reaches_the_daemon_of_its_node(mode, tmp_path):
    logs = tmp_path / "logs"
    done = cluster("--keep-logs", str(logs), *mode, "--", sys.executable, "-c", CONNECT)
    assert done.returncode == 0, done.stderr
    assert by_rank(done.stdout) == {0: ["connected"], 1: ["connected"]}
    for name in ("node0.log", "node1.log"):
        assert "ready" in (logs / name).read_text()


@both_modes
def test_a_killed_daemon_is_reported_and_is_no_error(mode):
    done = cluster(*mode, "--", sys.executable, "-c", KILL_DAEMON)
    assert done.returncode == 0, done.stderr
    assert "braidd of node1" in done.stderr and signal.SIGKILL.name in done.stderr
    assert "braidd of node0" not in done.stderr


@both_modes
def test_the_daemons_are_gone_at_the_end(mode):
    script = "cat $BRAID_CLUSTER_DIR/cluster.json"
    done = cluster("--nodes", "1", *mode, "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    node = json.loads("\n".join(by_rank(done.stdout)[0]))["nodes"][0]
    assert node["daemon_pid"] and not pathlib.Path(f"/proc/{node['daemon_pid']}").exists()
