# SPDX-License-Identifier: Apache-2.0
"""Sends and receives of torch go over braid: what torch makes of them gives what gloo gives."""

from __future__ import annotations

import pytest
from cluster_runs import run

pytest.importorskip("torch")


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(1, 3), (3, 1)])
def test_every_type_and_form_of_tensor_arrives_without_gloo(nodes, ranks_per_node):
    for result in run("messages.py", nodes=nodes, ranks_per_node=ranks_per_node).expect(3):
        assert result["wrong"] == []
        assert result["arrived"] >= 40
        assert not result["gloo"]


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(2, 1), (2, 2), (4, 1)])
def test_torchs_pipeline_schedules_give_what_they_give_over_gloo(nodes, ranks_per_node):
    ranks = nodes * ranks_per_node
    theirs = run("pipeline.py", "gloo", nodes=1, ranks_per_node=ranks).expect(ranks)
    ours = run("pipeline.py", "braid", nodes=nodes, ranks_per_node=ranks_per_node).expect(ranks)
    for one, other in zip(ours, theirs):
        assert one["steps"] == other["steps"]
        assert all(one["steps"].values())
        assert not one["gloo"]
