# SPDX-License-Identifier: Apache-2.0
"""bench/scale on real clusters of two and four nodes."""

import json
import os
import pathlib
import signal
import subprocess
import time

import pytest
from braid_build import BUILD, IS_SANITIZED, PATIENCE_S, ran
from cluster_tool import NAMESPACES
from bench_tools import SCALE
from real_cluster import needs_daemons

pytestmark = [
    needs_daemons,
    pytest.mark.skipif(IS_SANITIZED, reason="what a sanitizer costs says nothing about braidd"),
]

ARGUMENTS = [
    "--steps", "20", "--operations", "100", "--idle-seconds", "2", "--build", str(BUILD),
]  # fmt: skip
FLOWS_PER_LINK = 4


def namespaces_of(clusters: set[str]) -> set[str]:
    """Those of the clusters that processes with these ids have made; other tests have theirs."""
    names = os.listdir(NAMESPACES) if NAMESPACES.exists() else []
    return {name for name in names if name.split("-")[1:2] and name.split("-")[1] in clusters}


def children_of(pid: int) -> set[str]:
    return set(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def test_two_points_and_their_formulas(tmp_path):
    results = tmp_path / "scale.json"
    done = ran(
        [SCALE, "--points", "2x2,4", "--set", f"transport.flows_per_link={FLOWS_PER_LINK}",
         "--set", "collective.direct_bytes=0", "--set", "collective.two_hops_bytes=0",
         "--set", "collective.halving_bytes=0",
         "--json", str(results), *ARGUMENTS],
        timeout=2 * PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(results.read_text())
    assert report["errors"] == {} and report["tensors"] == 364
    assert len(report["load_average"]) == 2 and {"kernel", "cores"} <= set(report["versions"])
    shapes = [(one["nodes"], one["ranks_per_node"], one["jobs"], one["role"]) for one in report["rows"]]
    assert shapes == [(*shape, role) for shape in ((2, 2, 1), (4, 1, 1)) for role in ("coordinator", "member")]
    for row in report["rows"]:
        expect_sane(row)
    _, two, coordinator, four = report["rows"]
    assert coordinator["peers"] == 3
    assert two["plan_reports"] is None
    # The one node of four that is no neighbour of the coordinator says what it measured.
    assert four["plan_reports"] >= 2
    assert four["plan_report_bytes"] > 25 * report["tensors"]
    if four["plan_rounds"] > 0:
        assert four["plan_round_bytes"] > 8 * report["tensors"]
    assert "2x2x1" in done.stdout


def expect_sane(node: dict) -> None:
    assert 0 < node["formation_seconds"] < PATIENCE_S and node["step_seconds"] > 0
    assert node["trainers"] == node["ranks_per_node"] * node["jobs"]
    # A ring: one link to the next node, one from the node before.
    assert node["flows"] == node["flow_sockets"] == 2 * FLOWS_PER_LINK
    assert node["control_sockets"] >= node["peers"] >= 1
    assert node["descriptors"] > node["base_descriptors"] > 0 and node["threads"] >= 2
    assert node["resident_bytes"] > node["memory_bytes"] > node["base_memory_bytes"] > 1 << 18
    assert node["idle_bytes_per_second"] > 0 and node["idle_packets_per_second"] > 0
    assert 0 <= node["idle_cpu_share"] < 1 and node["formation_cpu_seconds"] > 0
    assert node["formation_messages_sent"] >= 4 and node["formation_bytes_sent"] > 500
    assert node["operation_messages"] == 1 and node["operation_bytes"] > 40
    assert node["operation_chunks"] == 2 * (node["nodes"] - 1)
    assert node["step_operations"] >= 20 and node["step_bytes_sent"] > 0


def test_an_interrupt_leaves_nothing_behind():
    tool = subprocess.Popen(
        [SCALE, "--points", "2", "--idle-seconds", "600", *ARGUMENTS[:4], "--build", str(BUILD)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        # A shell in which the tests run in the background ignores it, and what it starts would, too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    end = time.monotonic() + PATIENCE_S
    while len(namespaces_of(clusters := children_of(tool.pid))) < 3:
        assert time.monotonic() < end, "no cluster was made"
        time.sleep(0.05)
    time.sleep(1)  # it may be anywhere then
    tool.send_signal(signal.SIGINT)
    _, said = tool.communicate(timeout=PATIENCE_S)
    assert tool.returncode == 130, said
    assert namespaces_of(clusters) == set()
