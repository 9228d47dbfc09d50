# SPDX-License-Identifier: Apache-2.0
"""Owners of inverses, placed at costs that ranks have measured; on ranks that are threads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.once

from in_process import run_ranks  # noqa: E402
from kfac_models import kfac_of, make_model, train  # noqa: E402

COSTS = [4.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0]  # Seconds, beside which the link takes nothing.
FACTORS = [SimpleNamespace(name=f"{place}.A", size=100) for place in range(len(COSTS))]


def placed_owners(group: Any) -> Any:
    from braid.torch.kfac.placing import PlacedOwners

    return PlacedOwners(group, FACTORS, [80_000] * len(FACTORS))


def update(owners: Any, rank: int, costs: list[float]) -> None:
    """Each rank measures what it inverts."""
    owners.prepare()
    for place, owner in enumerate(owners.now.of):
        if owner in (rank, None):
            owners.note(place, costs[place])


@pytest.mark.parametrize("ranks", [2, 3])
def test_inverses_go_around_and_are_then_placed_at_the_costs_of_all_ranks(ranks):
    def work(group: Any, _: Any) -> tuple[Any, ...]:
        owners = placed_owners(group)
        update(owners, group.rank(), COSTS)
        first = list(owners.now.of)
        owners.prepare()
        return first, list(owners.now.of), list(owners.now.order), owners.placement

    of_ranks = run_ranks(ranks, work)
    first, owners, order, placement = of_ranks[0]
    assert all(each == of_ranks[0] for each in of_ranks)
    assert first == [place % ranks for place in range(len(COSTS))]
    assert sorted(order) == [place for place, owner in enumerate(owners) if owner is not None]
    assert sum(COSTS) / ranks <= max(placement.loads) < sum(COSTS) / ranks + 0.5


def test_costs_that_change_change_the_owners():
    def work(group: Any, _: Any) -> list[float]:
        owners = placed_owners(group)
        for costs in (COSTS, COSTS[::-1], COSTS[::-1]):
            update(owners, group.rank(), costs)
        return owners.placement.loads

    # The third update is placed at the second one's costs alone.
    for loads in run_ranks(2, work):
        assert sorted(loads) == pytest.approx([6, 6])


def test_they_are_placed_more_and_more_rarely():
    def work(group: Any, _: Any) -> list[int]:
        owners = placed_owners(group)
        placed, last = [], None
        for number in range(260):
            update(owners, group.rank(), COSTS)
            if owners.placement is not last:
                last = owners.placement
                placed.append(number)
        return placed

    assert run_ranks(2, work) == [[1, 2, 4, 8, 16, 32, 64, 128, 192, 256]] * 2


def test_a_training_says_how_its_inverses_are_placed():
    def work(group: Any, _: Any) -> tuple[Any, Any, int]:
        model = make_model()
        kfac = kfac_of(model, group)
        train(model, kfac, range(1), group.rank(), 2)
        before = kfac.placement
        train(model, kfac, range(1, 2), group.rank(), 2)
        return before, kfac.placement, len(kfac.placement.owners)

    of_ranks = run_ranks(2, work)
    assert of_ranks[0] == of_ranks[1] and of_ranks[0][0] is None and of_ranks[0][2] == 8
    assert 0 < of_ranks[0][1].bound_seconds <= of_ranks[0][1].makespan_seconds
