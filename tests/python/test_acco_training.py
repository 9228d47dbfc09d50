# SPDX-License-Identifier: Apache-2.0
"""Acco through real daemons, next to torch's optimizers that do the same by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import quadratics
from cluster_runs import SHAPES, once, run

torch = pytest.importorskip("torch")
pytestmark = once

# As trainers/acco.py has them.
CENTRES = (1.0, -3.0, 2.5, 7.0)


@cache
def trained(nodes: int, ranks_per_node: int) -> list[Any]:
    # One plan for all: else the trainings that are compared bit by bit add in another order.
    options = ("--set", "plan.planner=first")
    return run("acco.py", nodes=nodes, ranks_per_node=ranks_per_node, options=options).expect(4)


@pytest.mark.parametrize("calls", [20, 21])
@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_ranks_on_quadratics_follow_the_recurrence(nodes, ranks_per_node, calls):
    expected, w = quadratics.acco(CENTRES, calls, momentum=0.8, decay=0.02)
    for result in trained(nodes, ranks_per_node):
        one = result["quadratics"][str(calls)]
        assert one["seen"] == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert one["end"] == pytest.approx(w, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("way", "most"),
    [
        *((way, 1e-6) for way in ("momentum", "nesterov", "adamw", "lion", "ddp")),
        ("float64", 1e-13), ("bfloat16", 0.1), ("float16", 0.02), ("pull bf16", 0.01), ("int8", 0.1),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_it_trains_as_torchs_optimizer_does_by_hand(nodes, ranks_per_node, way, most):
    for result in trained(nodes, ranks_per_node):
        assert result["ways"][way]["far"] < most < result["ways"][way]["moved"]


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_all_ranks_have_the_same_bits_after_each_step(nodes, ranks_per_node):
    results = trained(nodes, ranks_per_node)
    for way in results[0]["ways"]:
        digests = [result["ways"][way]["digests"] for result in results]
        assert all(of_rank == digests[0] for of_rank in digests), way
        assert len(set(digests[0])) > len(digests[0]) / 2, way


@pytest.mark.parametrize("name", ["momentum", "adamw"])
@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_its_state_goes_on_where_it_is_loaded(nodes, ranks_per_node, name):
    for result in trained(nodes, ranks_per_node):
        # Between rounds bit by bit; in the middle of one, first halves are added in another order.
        assert len(set(result["resumed"][f"{name} 30"]["digests"])) == 1
        assert len(set(result["resumed"][f"{name} 31"]["digests"][:2])) == 1
        assert result["resumed"][f"{name} 31"]["far"] < 1e-6
