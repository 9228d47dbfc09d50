# SPDX-License-Identifier: Apache-2.0
"""braid.place: what Python adds to braid_place, which tests/unit tests."""

from __future__ import annotations

import pytest

import braid
from braid.errors import InvalidArgumentError

pytestmark = pytest.mark.once


def item(name: str, cost: float, dimension: int = 10) -> braid.PlacedItem:
    return braid.PlacedItem(name, (dimension, dimension), cost, 4 * dimension**2)


def test_a_placement_says_who_computes_what_and_when_it_ends():
    placement = braid.place([item("a", 3.0), item("b", 1.0), item("c", 2.0)], 2, link=braid.Link(0.5, 0.0))
    # b is spread while a and c are computed; then they are spread one after the other.
    assert placement.owners == [0, 1, 1] and placement.order == [1, 0, 2]
    assert placement.loads == [3.0, 3.0] and placement.makespan_seconds == 4.0
    assert placement.bound_seconds == placement.makespan_seconds and placement.is_optimal


def test_everybody_is_none():
    placement = braid.place([item("a", 3.0), item("b", 1.0, dimension=2000)], 2, "lbp")
    assert placement.owners == [None, 0] and placement.order == [1]
    assert placement.loads == [4.0, 3.0] and placement.makespan_seconds == 4.0


def test_the_rule_of_a_paper_is_not_better():
    items = [item(f"layer{i}", 0.001 * (i % 7 + 1) ** 2, 300 * (i % 7 + 1)) for i in range(40)]
    link = braid.Link(1e-4, 1e-9)
    best = braid.place(items, 4, link=link)
    for rule in ("lpt", "lbp", "lbp:t", "round-robin", "block", "kaisa:0.5", "megatron"):
        assert best.makespan_seconds <= braid.place(items, 4, rule, link).makespan_seconds


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([item("a", -1.0)], 2), "item 0 'a': its cost is -1"),
        (([item("a", float("nan"))], 2), "item 0 'a': its cost is nan"),
        (([item("a", "much")], 2), "item 0 'a': its cost is 'much'; right is a number"),
        (([item("a", 1.0), item("a", 2.0)], 2), "item 1 'a': its id stands twice"),
        (([braid.PlacedItem("a", (1, -1), 1.0, 4)], 2), "a dimension of its shape is -1"),
        (([braid.PlacedItem("a", (1,), 1.0, 1.5)], 2), "item 0 'a': its bytes is 1.5"),
        (([item("a", 1.0)], 0), "0 ranks; right are 1 to 65536"),
        (([item("a", 1.0)], -1), "ranks is -1"),
        (([item("a", 1.0)], 1 << 31), "right are 1 to 65536"),
        (([], 2), "0 items"),
        (([item("a", 1.0)], 2, "fastest"), "no rule of placement is named 'fastest'; there are best, exact"),
        (([item("a", 1.0)], 2, "best", braid.Link(-1.0, 0.0)), "the link takes -1"),
    ],
)
def test_what_is_wrong_is_named(arguments, said):
    with pytest.raises(InvalidArgumentError, match=said):
        braid.place(*arguments)
