# SPDX-License-Identifier: Apache-2.0
"""Optimizers whose parameters have homes, on ranks that are threads, beside the same ones without."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.once

from in_process import run_ranks  # noqa: E402
from placed_models import (  # noqa: E402
    SHAPES,
    STEPS,
    alone,
    give_gradients,
    gradient,
    make_parameters,
    optimizer_of,
    scheduler_of,
)

needs_muon = pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon")


def placed_of(optimizer: Any, group: Any, **options: Any) -> Any:
    import braid.torch

    return braid.torch.placed(optimizer, process_group=group, **options)


def assert_same_state(mine: Any, right: Any) -> None:
    assert mine["param_groups"] == right["param_groups"]
    assert mine["state"].keys() == right["state"].keys()
    for place, state in right["state"].items():
        assert all(torch.equal(mine["state"][place][key], value) for key, value in state.items())


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("kind", [pytest.param("Muon", marks=needs_muon), "AdamW"])
def test_homes_do_what_every_rank_would(kind, ranks):
    def work(group: Any, _: Any) -> Any:
        parameters = make_parameters()
        placed = placed_of(optimizer_of(kind, parameters), group)
        scheduler = scheduler_of(placed)
        for step in range(STEPS):
            give_gradients(parameters, step, range(group.rank(), group.rank() + 1))
            assert placed.step(lambda: 7.5) == 7.5
            scheduler.step()
        return parameters, len(placed.state), placed.state_dict()

    right, optimizer = alone(kind, ranks)
    results = run_ranks(ranks, work)
    for parameters, _, state in results:
        assert all(torch.equal(parameters[name], right[name]) for name in SHAPES)
        assert_same_state(state, optimizer.state_dict())
    # Each state is kept once.
    assert sum(count for _, count, _ in results) == len(SHAPES)
    assert all(count > 0 for _, count, _ in results)


def test_a_state_goes_on_in_either_optimizer():
    _, before = alone("AdamW", 2, steps=2)
    saved = before.state_dict()
    halfway = [copy.deepcopy(parameter.detach()) for parameter in alone("AdamW", 2, steps=2)[0].values()]

    def work(group: Any, _: Any) -> Any:
        parameters = make_parameters()
        for parameter, value in zip(parameters.values(), halfway):
            parameter.data.copy_(value)
        placed = placed_of(optimizer_of("AdamW", parameters), group)
        placed.load_state_dict(copy.deepcopy(saved))
        assert len(placed.state) < len(SHAPES)
        give_gradients(parameters, 2, range(group.rank(), group.rank() + 1))
        placed.step()
        return parameters, placed.state_dict()

    parameters = make_parameters()
    for parameter, value in zip(parameters.values(), halfway):
        parameter.data.copy_(value)
    after = optimizer_of("AdamW", parameters)
    after.load_state_dict(copy.deepcopy(saved))
    give_gradients(parameters, 2, range(2))
    after.step()
    for mine, state in run_ranks(2, work):
        assert all(torch.equal(mine[name], parameters[name]) for name in SHAPES)
        assert_same_state(state, after.state_dict())


def test_a_parameter_without_a_gradient_stays():
    def work(group: Any, _: Any) -> Any:
        parameters = make_parameters()
        placed = placed_of(optimizer_of("AdamW", parameters), group)
        give_gradients(parameters, 0, range(1))
        parameters["tall"].grad = None
        placed.step()
        return parameters

    for parameters in run_ranks(2, work):
        assert torch.equal(parameters["tall"], make_parameters()["tall"])
        assert not torch.equal(parameters["wide"], make_parameters()["wide"])


def test_what_costs_most_stands_alone():
    import braid.torch

    def work(group: Any, _: Any) -> Any:
        costs = {SHAPES["square"]: 10.0}
        homes = braid.torch.Homes(
            make_parameters(), lambda shape: costs.get(shape, 1.0), process_group=group
        )
        return [homes.owner_of(name) for name in SHAPES]

    first, *others = run_ranks(2, work)
    assert all(each == first for each in others)
    assert first.count(first[list(SHAPES).index("square")]) == 1


def test_roots_for_shampoo_are_made_once():
    """As docs/second-order.md has it."""
    import braid.torch

    def inverse_fourth_root(matrix: torch.Tensor) -> torch.Tensor:
        values, vectors = torch.linalg.eigh(matrix + torch.eye(len(matrix)))
        return vectors @ torch.diag(values**-0.25) @ vectors.t()

    def statistic(name: str, rank: int) -> torch.Tensor:
        rows = gradient(0, rank, name)
        return rows @ rows.t()

    def work(group: Any, _: Any) -> Any:
        statistics = {name: statistic(name, group.rank()) for name in SHAPES}
        roots = {name: torch.zeros_like(matrix) for name, matrix in statistics.items()}
        made = []

        def make_root(name: str) -> None:
            roots[name].copy_(inverse_fourth_root(statistics[name]))
            made.append(name)

        homes = braid.torch.Homes(roots, cost=lambda shape: 1e-11 * shape[0] ** 3, process_group=group)
        homes.gather_to_owner(statistics)
        homes.spread(roots, make_root)
        return roots, made

    results = run_ranks(2, work)
    assert sorted(name for _, made in results for name in made) == sorted(SHAPES)
    for roots, _ in results:
        for name in SHAPES:
            mean = (statistic(name, 0) + statistic(name, 1)) / 2
            assert torch.allclose(roots[name], inverse_fourth_root(mean), atol=1e-6)


def test_mistakes_are_named():
    import braid.torch

    parameters = make_parameters()
    placed = braid.torch.placed(optimizer_of("AdamW", parameters))
    with pytest.raises(TypeError, match="placed already"):
        braid.torch.placed(placed)
    placed.add_param_group({"params": [torch.nn.Parameter(torch.ones(2, 2))]})
    give_gradients(parameters, 0, range(1))
    placed.step()
    with pytest.raises(RuntimeError, match="add groups before it"):
        placed.add_param_group({"params": [torch.nn.Parameter(torch.ones(2, 2))]})
    with pytest.raises(TypeError, match="state_dict"):
        copy.deepcopy(placed)
    homes = braid.torch.Homes(parameters)
    with pytest.raises(ValueError, match="no home: unheard"):
        homes.spread({"unheard": torch.ones(1)})
