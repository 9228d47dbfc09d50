# SPDX-License-Identifier: Apache-2.0
"""torch.distributed over braid gives what gloo gives."""

from __future__ import annotations

import pytest
from cluster_runs import SHAPES, run

pytest.importorskip("torch")


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_every_collective_type_and_reduction_agrees_with_gloo(nodes, ranks_per_node):
    results = run("collectives.py", nodes=nodes, ranks_per_node=ranks_per_node).expect(4)
    # 4 ranks, 7 types that braid has: fewer comparisons would mean that a loop ran empty.
    assert all(result["compared"] > 1000 for result in results)


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_gather_scatter_and_all_to_all_go_over_braid(nodes, ranks_per_node):
    results = run("exchanges.py", nodes=nodes, ranks_per_node=ranks_per_node).expect(4)
    assert all(result["compared"] > 190 and not result["gloo"] for result in results)


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_meshes_and_point_to_point_work(nodes, ranks_per_node):
    results = run("groups.py", nodes=nodes, ranks_per_node=ranks_per_node).expect(4)
    assert all(result["done"] == ["point_to_point", "mesh", "distributed_tensor"] for result in results)


def test_tensors_without_memory_are_refused():
    results = run("without_memory.py", nodes=1, environment={"BRAID_ENABLE": "1"}).expect(2)
    for result in results:
        assert [("'meta'" in text) for text in result["texts"]] == [True] * 5
        assert result["total"] == 2.0
