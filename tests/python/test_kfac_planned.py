# SPDX-License-Identifier: Apache-2.0
"""Factors and gradients of one job are planned by the daemons, each set beside the other."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from cluster_runs import once, run

torch = pytest.importorskip("torch")
pytestmark = once

EVERY = (1, 3)  # a step with factors
FACTORS = 8


@cache
def trained(factor_every: int) -> list[Any]:
    return run("kfac_planned.py", str(factor_every), nodes=4, ranks_per_node=1).expect(4)


def is_of_factors(one: Any) -> bool:
    return any("kfac" in name for group in one["groups"] for name in group)


@pytest.mark.parametrize("factor_every", EVERY)
def test_results_are_exact_with_both_plans(factor_every):
    results = trained(factor_every)
    assert all(result["far"] < 1e-9 for result in results)
    assert len({result["digest"] for result in results}) == 1


@pytest.mark.parametrize("factor_every", EVERY)
def test_both_sets_have_plans_and_those_of_a_number_are_the_same_on_all_nodes(factor_every):
    results = trained(factor_every)
    groups: dict[tuple[bool, int], Any] = {}
    for one in (each for result in results for each in result["sets"]):
        assert one["plan"] > 0
        # A node may be asked just before it hears of the next plan.
        assert groups.setdefault((is_of_factors(one), one["plan"]), one["groups"]) == one["groups"]
    assert {is_factors for is_factors, _ in groups} == {False, True}
    factors, gradients = sorted(results[0]["sets"], key=is_of_factors, reverse=True)
    assert sum(map(len, factors["groups"])) == FACTORS and not is_of_factors(gradients)


@pytest.mark.parametrize("factor_every", EVERY)
def test_each_node_knows_how_often_the_sets_meet(factor_every):
    for result in trained(factor_every):
        factors, gradients = sorted(result["sets"], key=is_of_factors, reverse=True)
        ((beside_factors,), (beside_gradients,)) = factors["beside"], gradients["beside"]
        assert is_of_factors({"groups": [[beside_gradients["tensor"]]]})
        assert beside_factors["tensor"] in [name for group in gradients["groups"] for name in group]
        # The first steps of factors may have had no planned gradients beside them.
        assert 0.7 < beside_factors["share"] <= 1
        assert abs(beside_gradients["share"] - 1 / factor_every) < 0.05
