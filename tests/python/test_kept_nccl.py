# SPDX-License-Identifier: Apache-2.0
"""Which process groups of an enabled script keep NCCL, and HSDP whose two levels have backends of their own."""

from __future__ import annotations

import pytest
from cluster_runs import once, run

torch = pytest.importorskip("torch")

HAS_OVERRIDES = tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 9)
MESH = ["braid", "nccl"]


@pytest.mark.parametrize("asked", [["nccl"], []], ids=["nccl", "nothing"])
def test_groups_within_a_node_keep_nccl_and_groups_over_nodes_are_braid_s(asked):
    results = run("kept_nccl.py", *asked, nodes=2, ranks_per_node=2).expect(4)
    kept = asked or ["cpu:gloo,cuda:nccl"]
    expected = {
        "default": ["braid"], "as the default group": kept, "nccl": ["nccl"], "both": ["cpu:gloo,cuda:nccl"],
        "gloo": ["braid"], "braid": ["braid"], "subgroups": ["nccl"], "across": ["braid"], "all": ["braid"],
        "split": kept, "mesh": ["braid", *kept],
    }  # fmt: skip
    if HAS_OVERRIDES:
        expected["overridden"] = MESH
    assert all(result["got"] == expected for result in results)
    # One line a group, from its first rank.
    assert [len(result["told"]) > 0 for result in results] == [True, False, True, False]
    assert set(results[0]["told"]) == {"a process group of 2 ranks, all on one node, keeps NCCL"}


@once
def test_a_script_that_asks_for_gloo_gets_braid_within_a_node_too():
    results = run("kept_nccl.py", "gloo", nodes=2, ranks_per_node=2).expect(4)
    for result in results:
        assert result["got"]["default"] == result["got"]["as the default group"] == ["braid"]
        assert result["got"]["split"] == ["braid"] and result["got"]["mesh"] == ["braid", "braid"]
        assert result["got"]["nccl"] == ["nccl"]


@pytest.mark.parametrize("asked", [["nccl"], []], ids=["nccl", "nothing"])
def test_a_job_on_one_node_keeps_nccl(asked):
    for result in run("kept_nccl.py", *asked, nodes=1, ranks_per_node=2).expect(2):
        got = result["got"]
        assert got["default"] in (asked, ["undefined"]) and got["nccl"] == got["subgroups"] == ["nccl"]
        assert got["gloo"] == got["braid"] == ["braid"]


@once
@pytest.mark.parametrize(
    ("variable", "value", "keeps"),
    [
        ("LOCAL_WORLD_SIZE", "4", True), ("LOCAL_WORLD_SIZE", "2", False), ("LOCAL_WORLD_SIZE", "many", False),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "4", True), ("SLURM_STEP_TASKS_PER_NODE", "2(x2)", False), ("HOME", "/", False),
    ],
)  # fmt: skip
def test_the_launcher_says_whether_all_ranks_are_on_one_node(monkeypatch, variable, value, keeps):
    from braid.torch.attach import within_nodes
    from braid.torch.group import launched

    for each in (*launched.LOCAL_SIZES, "WORLD_SIZE"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(within_nodes, "_has_nccl", lambda: True)
    assert within_nodes.default_keeps_nccl("nccl", 4) == keeps
    assert not within_nodes.default_keeps_nccl("nccl", None)  # Nobody says how many ranks there are.
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert within_nodes.default_keeps_nccl(None, -1) == keeps
    assert not within_nodes.default_keeps_nccl("gloo", 4)


@once
def test_where_an_optimizer_is_to_be_delayed_a_job_on_one_node_is_braid_s():
    environment = {"BRAID_UPDATE": "od-sgd"}
    for result in run("kept_nccl.py", "nccl", nodes=1, ranks_per_node=2, environment=environment).expect(2):
        assert result["got"]["default"] == ["braid"]


@once
@pytest.mark.skipif(not HAS_OVERRIDES, reason="backend_override came with torch 2.9")
@pytest.mark.parametrize("default", ["braid", "gloo"])
def test_hsdp_with_braid_between_nodes_trains_as_over_gloo(default):
    """gloo stands in for NCCL within the node."""
    ours = run("hsdp.py", default, "braid", "gloo", nodes=2, ranks_per_node=2).expect(4)
    theirs = run("hsdp.py", "gloo", nodes=2, ranks_per_node=2).expect(4)
    for mine, other in zip(ours, theirs):
        assert mine["backends"] == ["braid", "gloo"] and other["backends"] == ["gloo", "gloo"]
        assert mine["losses"] == other["losses"] and mine["digest"] == other["digest"]
        assert len(set(mine["losses"])) == 8
