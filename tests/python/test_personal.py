# SPDX-License-Identifier: Apache-2.0
"""Nodes without a daemon: with BRAID_ENABLE=1 each gets one for the run, and nothing is left of it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from cluster_runs import Run, run

pytest.importorskip("torch")

NODE = str(Path(__file__).with_name("personal_node.py"))
BUILD = Path(os.environ.get("BRAID_BUILD") or Path(__file__).resolve().parents[2] / "build" / "release")
STARTED = re.compile(r"no braidd on this node: started one for you on (\S+) \(process (\d+)\)")

pytestmark = pytest.mark.skipif(
    os.path.exists("/run/braid/braidd.sock"), reason="this machine has a daemon of its own"
)


def trained(nodes: int, ranks: int, *options: str, **environment: str) -> Run:
    """`ranks` on each node, by torchrun; 0: one, as the cluster starts it."""
    return run(
        "personal.py", nodes=nodes, ranks_per_node=1, launcher=(sys.executable, NODE, str(ranks)), options=options,
        environment={"BRAID_ENABLE": "1", "BRAID_DAEMON": str(BUILD / "bin" / "braidd"), **environment},
    )  # fmt: skip


@pytest.mark.parametrize("nodes", [1, 2])
def test_each_node_gets_a_daemon_which_goes_with_the_run(nodes):
    done = trained(nodes, 2, "--no-daemons")
    results = done.expect(2 * nodes)
    assert all(result["backend"] == "braid" and result["is_right"] for result in results), results
    assert len({result["socket"] for result in results}) == nodes
    assert len(STARTED.findall(done.output)) == nodes, done.output
    for node in range(nodes):
        assert f"LEFT on node {node}: nothing" in done.output, done.output


@pytest.mark.parametrize("lacking", [0, 1])
def test_nodes_that_are_not_alike_are_told_so_on_every_rank(lacking):
    done = trained(2, 0, BRAID_TEST_LACKING=str(lacking))
    assert done.exit_code != 0
    errors = [result["error"] for result in done.reported(2)]
    for error in errors:
        assert "set BRAID_PERSONAL=1 on all ranks" in error, error
        assert ("got one for this run alone" if lacking == 0 else "no braidd on this node") in error, error
    for node in range(2):
        assert f"LEFT on node {node}: nothing" in done.output, done.output
