# SPDX-License-Identifier: Apache-2.0
"""Callbacks that start collectives and wait for them."""

from __future__ import annotations

import pytest
from cluster_runs import once, run

pytest.importorskip("torch")


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(1, 2), pytest.param(3, 1, marks=once)])
def test_callbacks_may_wait_for_collectives_that_they_start(nodes, ranks_per_node):
    size = nodes * ranks_per_node
    results = run("callbacks.py", nodes=nodes, ranks_per_node=ranks_per_node).expect(size)
    assert all(len(result["done"]) == 8 for result in results)
