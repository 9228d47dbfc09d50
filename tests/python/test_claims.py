# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel around parameters whose gradients an optimizer of braid reduces itself."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from cluster_runs import once, run

pytest.importorskip("torch")

WAYS = ("all", "first layer", "last layer", "both", "small buckets", "changed in the middle", "and back")
HOWS = ["registered", pytest.param("enabled", marks=once)]


@cache
def trained(how: str) -> list[Any]:
    return run("claimed.py", how, nodes=2, ranks_per_node=1).expect(2)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", HOWS)
def test_gradients_are_reduced_once(how, way):
    results = trained(how)
    assert len({result["digests"][way] for result in results}) == 1
    for result in results:
        assert result["far"][way] < 1e-13


@pytest.mark.parametrize("way", ["over gloo", "last layer over gloo"])
def test_gradients_are_reduced_once_where_ddp_is_on_another_group(way):
    for result in trained("registered"):
        assert result["far"][way] < 1e-13


@pytest.mark.parametrize(
    ("way", "claimed"),
    [
        ("all", "1111"),
        ("first layer", "1100"),
        ("last layer", "0011"),
        ("over gloo", "1111"),
        ("last layer over gloo", "0011"),
    ],
)
def test_a_claimed_gradient_stays_that_of_its_rank(way, claimed):
    first, second = (result["gradients"][way] for result in trained("registered"))
    assert [mine != theirs for mine, theirs in zip(first, second)] == [one == "1" for one in claimed]


@pytest.mark.parametrize("how", HOWS)
def test_a_hook_of_the_script_is_refused(how):
    for result in trained(how):
        first, second = result["refusals"]
        assert "has a communication hook of its own, which reduces gradients that an optimizer" in first
        assert "communication hook of its own" in second or "can only be called once" in second
