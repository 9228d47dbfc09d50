# SPDX-License-Identifier: Apache-2.0
"""Placed optimizers through real daemons, with DistributedDataParallel and without."""

from __future__ import annotations

import pytest
from cluster_runs import SHAPES, once, run

torch = pytest.importorskip("torch")
pytestmark = once


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_all_ranks_have_the_bits_of_one_rank_alone(nodes, ranks_per_node):
    results = run("placed_ranks.py", nodes=nodes, ranks_per_node=ranks_per_node).expect(4)
    for way in results[0]["ways"]:
        right = results[0]["right"][way.split()[1]]
        assert {result["ways"][way]["digest"] for result in results} == {right}, way
        assert sum(result["ways"][way]["states"] for result in results) == 5, way
