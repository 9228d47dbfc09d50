# SPDX-License-Identifier: Apache-2.0
"""scripts/cluster leaves nothing behind, however it ends, and does not touch its neighbours."""

import os
import signal

import pytest
from cluster_tool import (
    DEADLINE_S,
    Running,
    both_modes,
    by_rank,
    cluster,
    eventually,
    is_running,
    python,
)


@both_modes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_tool_removes_everything(mode, number):
    with Running(*mode) as running:
        assert not running.is_gone()
        running.tool.send_signal(number)
        assert running.tool.wait(DEADLINE_S) == 128 + number
        assert running.is_gone()


@both_modes
def test_the_reaper_removes_everything_after_a_killed_tool(mode):
    with Running(*mode) as running:
        running.tool.kill()
        assert eventually(running.is_gone)


@both_modes
def test_the_next_start_removes_what_tool_and_reaper_left(mode):
    with Running(*mode) as running:
        os.kill(running.reaper(), signal.SIGKILL)
        running.tool.kill()
        running.tool.wait(DEADLINE_S)
        # Another test may have started one at this very moment; then this one finds nothing to remove.
        assert cluster(*mode, "--", "true").returncode == 0
        assert eventually(running.is_gone)


@both_modes
def test_children_that_a_rank_leaves_behind_are_stopped(mode):
    source = (
        "import subprocess; print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)"
    )
    done = cluster("--nodes", "1", *mode, *python(source))
    assert done.returncode == 0
    pid = int(by_rank(done.stdout)[0][0])
    assert eventually(lambda: not is_running(pid))


@both_modes
def test_two_clusters_side_by_side_do_not_meet(mode):
    with Running(*mode) as first, Running(*mode) as second:
        for key in ("id", "directory", "job", "index"):
            assert first.state[key] != second.state[key]
        addresses = [node["address"] for run in (first, second) for node in run.state["nodes"]]
        assert len(set(addresses)) == 4
        first.tool.terminate()
        first.tool.wait(DEADLINE_S)
        assert first.is_gone() and all(is_running(pid) for pid in second.pids)
