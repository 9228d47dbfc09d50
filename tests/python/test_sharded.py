# SPDX-License-Identifier: Apache-2.0
"""ShardedOptimizer: through real daemons, next to torch's optimizers."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from cluster_runs import SHAPES, once, run

torch = pytest.importorskip("torch")
pytestmark = once


@cache
def trained(nodes: int, ranks_per_node: int) -> list[Any]:
    # One plan for all: else the trainings that are compared bit by bit add in another order.
    options = ("--set", "plan.planner=first")
    return run("sharded.py", nodes=nodes, ranks_per_node=ranks_per_node, options=options).expect(4)


BACKWARD = tuple(
    f"{how}{name}"
    for how in ("", "forward ", "ddp ", "ddp views ", "ddp forward ", "ddp views forward ", "ddp unused ")
    for name in ("momentum", "adamw")
)
EXACT = ("sgd", "momentum", "nesterov", "adamw", "lion", "overlapped", "ddp", "ddp overlapped")


@pytest.mark.parametrize("way", EXACT)
@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_it_trains_as_torchs_optimizer_on_the_mean_gradient(nodes, ranks_per_node, way):
    for result in trained(nodes, ranks_per_node):
        assert result["ways"][way]["far"] < 1e-6 < 0.01 < result["ways"][way]["moved"]


@pytest.mark.parametrize(
    ("way", "most"),
    [("adam", 1e-5), ("float64", 1e-14), ("bfloat16", 0.1), ("float16", 0.02), ("pull bf16", 0.01), ("int8", 0.1)],
)
@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_it_trains_about_so_where_values_are_rounded(nodes, ranks_per_node, way, most):
    for result in trained(nodes, ranks_per_node):
        assert result["ways"][way]["far"] < most < result["ways"][way]["moved"]


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_all_ranks_have_the_same_bits(nodes, ranks_per_node):
    results = trained(nodes, ranks_per_node)
    for way in results[0]["ways"]:
        assert len({result["ways"][way]["digest"] for result in results}) == 1, way


@pytest.mark.parametrize("way", BACKWARD)
@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_gradients_that_go_during_the_backward_pass_change_no_bit(nodes, ranks_per_node, way):
    for result in trained(nodes, ranks_per_node):
        assert result["backward"][way] == result["ways"][way.split()[-1]]["digest"]


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_parameters_may_be_used_in_some_passes_only(nodes, ranks_per_node):
    digests = [set(result["in_turn"].values()) for result in trained(nodes, ranks_per_node)]
    assert len(set.union(*digests)) == 1


@pytest.mark.parametrize("name", ["momentum", "adamw", "lion"])
@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_its_state_goes_on_where_it_is_loaded(nodes, ranks_per_node, name):
    for result in trained(nodes, ranks_per_node):
        assert len(set(result["handed"][name]["digests"])) == 1
        assert result["handed"][name]["far"] < 1e-6


@pytest.mark.parametrize("dtype", ["torch.bfloat16", "torch.float16"])
@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_the_state_of_16_bit_parameters_is_exact(nodes, ranks_per_node, dtype):
    for result in trained(nodes, ranks_per_node):
        assert len(set(result["narrow"][dtype])) == 1
