# SPDX-License-Identifier: Apache-2.0
"""K-FAC through real daemons, with DistributedDataParallel and without."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from cluster_runs import SHAPES, once, run

torch = pytest.importorskip("torch")
pytestmark = once

WAYS = [
    f"{ddp}{mode} {method}"
    for ddp in ("", "ddp ") for mode in ("spd", "mpd", "d") for method in ("eigen", "inverse")
]  # fmt: skip


@cache
def trained(nodes: int, ranks_per_node: int) -> list[Any]:
    return run("kfac_ranks.py", nodes=nodes, ranks_per_node=ranks_per_node).expect(4)


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_all_ranks_have_the_same_bits(nodes, ranks_per_node):
    results = trained(nodes, ranks_per_node)
    for way in results[0]["ways"]:
        assert len({result["ways"][way]["digest"] for result in results}) == 1, way


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_ranks_do_together_what_one_does(nodes, ranks_per_node, way):
    for result in trained(nodes, ranks_per_node):
        assert result["ways"][way]["far"] < 1e-9 < 0.01 < result["moved"]


@pytest.mark.parametrize("way", ["ddp bf16", "dp eigen", "ddp dp inverse"])
@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_some_ways_compute_something_else(nodes, ranks_per_node, way):
    for result in trained(nodes, ranks_per_node):
        assert 1e-9 < result["ways"][way]["far"] < 0.5 * result["moved"]


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_all_ranks_place_inverses_alike(nodes, ranks_per_node):
    owners = [result["owners"] for result in trained(nodes, ranks_per_node)]
    assert owners == owners[:1] * 4 and len(owners[0]) == 8
