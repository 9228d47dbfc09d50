# SPDX-License-Identifier: Apache-2.0
"""What a trainer is told when things go wrong, and that every script ends."""

from __future__ import annotations

import re
import sys

import pytest
from cluster_runs import COLD, once, run

torch = pytest.importorskip("torch")

KILLED = 128 + 9


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(1, 3), pytest.param(3, 1, marks=once)])
@pytest.mark.parametrize(
    "work",
    [
        "plain", "asynchronous", "ddp", "planned", "sharded", "half submitted", "half submitted factors", "delayed",
        "acco",
    ],
)  # fmt: skip
def test_a_killed_rank_is_named_to_the_others(work, nodes, ranks_per_node):
    launcher = None
    if work == "planned":  # braid-run puts the hook under DDP.
        work, launcher = "ddp", (sys.executable, "-m", "braid.torch.launcher")
    done = run("failure.py", work, nodes=nodes, ranks_per_node=ranks_per_node, launcher=launcher)
    assert done.exit_code == KILLED, done.output
    assert sorted(done.results) == [0, 2], done.output
    for result in done.results.values():
        assert re.search(r"\brank 1\b", result["text"]), result
        assert re.search(r"\brank 1\b", result["again"]), result
        # DDP's reducer hands errors on as RuntimeError, whatever they were.
        assert "DistBackendError" in (result["text"] if work == "ddp" else result["kinds"]), result


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(1, 3), pytest.param(3, 1, marks=once)])
@pytest.mark.parametrize("work", ["plain", "ddp", "half submitted"])
def test_a_rank_that_ends_by_an_exception_is_named_to_the_others(work, nodes, ranks_per_node):
    done = run("failure.py", work, "raise", nodes=nodes, ranks_per_node=ranks_per_node)
    assert done.exit_code == 1, done.output
    assert sorted(done.results) == [0, 2], done.output
    left = "rank 1 left the job (its process has ended with an uncaught KeyError)"
    for result in done.results.values():
        assert left in result["text"], result


@pytest.mark.parametrize("end", ["", "destroy"])
def test_why_a_rank_was_refused_is_told_to_the_others(end):
    done = run("failure.py", "plain", "refused", *filter(None, [end]), nodes=2, ranks_per_node=2)
    assert done.exit_code == 1, done.output
    assert sorted(done.results) == [0, 2, 3], done.output
    told = r"rank 1 left the job \(.* ValueError: all-gather: the output has 3 elements, 4 ranks with 2 each need 8\)"
    for result in done.results.values():
        assert re.search(told, result["text"]), result


@pytest.mark.parametrize(
    "how",
    [
        "recv", "irecv", "send", "recv from any", "all_reduce", "all_reduce later", "reduce",
        "reduce_scatter", "monitored_barrier", "again all_reduce", "again reduce_scatter",
    ],
)  # fmt: skip
@pytest.mark.parametrize(("victim", "nodes"), [(0, 1), (1, 1), pytest.param(2, 3, marks=once)])
def test_a_rank_that_died_before_first_contact_is_named_to_who_speaks_to_it(victim, nodes, how):
    done = run("first_contact.py", str(victim), how, nodes=nodes, ranks_per_node=3 // nodes)
    assert done.exit_code == KILLED, done.output
    assert sorted(done.results) == [rank for rank in range(3) if rank != victim], done.output
    for result in done.results.values():
        assert re.search(rf"\brank {victim}\b", result["text"]), result
        assert "third_party/gloo" not in result["text"], result
    ended_badly = re.findall(r"cluster: rank (\d+):", done.output)
    assert set(ended_badly) == {str(victim)}, done.output


@pytest.mark.parametrize(
    ("how", "nodes", "exit_code"),
    [
        ("simply", 1, 0),
        ("destroyed_twice_used", 2, 0),
        ("with_gloo_used", 1, 0),
        ("in_flight", 2, 0),
        ("forked", 1, 0),
        ("exit_code", 2, 3),
    ],
)
def test_a_script_ends_cleanly(how, nodes, exit_code):
    # With all that the end of an interpreter does.
    done = run("endings.py", how, nodes=nodes, ranks_per_node=2 // nodes, launcher=COLD)
    assert done.exit_code == exit_code, done.output
    assert [done.results[rank]["total"] for rank in range(2)] == [2.0] * 2, done.output
    assert "Traceback" not in done.output, done.output


def test_without_a_daemon_the_error_names_the_socket():
    done = run(
        "endings.py", "simply", ranks_per_node=1, options=("--no-daemons",),
        launcher=("env", "BRAID_SOCKET=/nowhere/braidd.sock", *COLD),
    )  # fmt: skip
    assert done.exit_code == 1, done.output
    assert "DistBackendError" in done.output
    assert "/nowhere/braidd.sock" in done.output
