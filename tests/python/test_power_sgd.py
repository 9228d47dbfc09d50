# SPDX-License-Identifier: Apache-2.0
"""PowerSGD: its arithmetic on ranks that are only objects, and training through real daemons."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import pytest
from cluster_runs import SHAPES, once, run

torch = pytest.importorskip("torch")
pytestmark = once

RANKS = 3
ROWS, COLUMNS = 40, 24


class World:
    """Some ranks' matrices of one gradient."""

    def __init__(self, rank: int) -> None:
        from braid.torch.ddp.power_sgd import LowRank, Shape

        self.shape = Shape(ROWS, COLUMNS, rank)
        self.ranks = [LowRank(self.shape, torch.device("cpu"), seed=5) for _ in range(RANKS)]

    def average(self, gradients: list[Any]) -> list[Any]:
        """What each rank gets."""
        ps = [torch.empty(ROWS * self.shape.rank) for _ in self.ranks]
        for rank, gradient, p in zip(self.ranks, gradients, ps):
            rank.project(gradient.reshape(-1), p)
        qs = [torch.empty(COLUMNS * self.shape.rank) for _ in self.ranks]
        for rank, q in zip(self.ranks, qs):
            rank.project_back(sum(ps), 1 / RANKS, q)
        results = [torch.empty(ROWS * COLUMNS) for _ in self.ranks]
        for rank, result in zip(self.ranks, results):
            rank.expand(sum(qs), result)
        return [result.view(ROWS, COLUMNS) for result in results]

    def left_over(self) -> Any:
        return sum(rank._matrix for rank in self.ranks) / RANKS


def gradients(seed: int) -> list[Any]:
    torch.manual_seed(seed)
    return [torch.randn(ROWS, COLUMNS) for _ in range(RANKS)]


def of_rank(rank: int, seed: int) -> list[Any]:
    """Gradients whose columns and rows lie in spaces of so few dimensions, the same ones in every step."""
    torch.manual_seed(1)
    columns, rows = torch.randn(ROWS, rank), torch.randn(rank, COLUMNS)
    torch.manual_seed(seed)
    return [columns @ torch.randn(rank, rank) @ rows for _ in range(RANKS)]


def mean(matrices: list[Any]) -> Any:
    return sum(matrices) / len(matrices)


def test_gradients_of_low_rank_are_exact():
    world = World(4)
    for seed in range(10):
        given = of_rank(4, seed)
        for result in world.average(given):
            assert torch.allclose(result, mean(given), atol=1e-3)


def test_what_a_step_loses_comes_later():
    world, given, got = World(2), torch.zeros(ROWS, COLUMNS), torch.zeros(ROWS, COLUMNS)
    for seed in range(30):
        step = gradients(seed)
        given += mean(step)
        got += world.average(step)[0]
    assert torch.allclose(got + world.left_over(), given, atol=1e-3)
    assert world.left_over().norm() < 0.8 * given.norm()


def test_it_begins_where_the_step_before_has_ended():
    """It finds the largest singular vectors of one matrix that it sees again and again."""
    torch.manual_seed(0)
    matrix = torch.randn(ROWS, 6) @ torch.diag(torch.tensor([9.0, 7, 3, 1, 0.5, 0.2])) @ torch.randn(6, COLUMNS)
    u, s, v = torch.linalg.svd(matrix)
    best = u[:, :2] @ torch.diag(s[:2]) @ v[:2]
    world = World(2)
    for _ in range(12):
        for rank in world.ranks:
            rank._matrix.zero_()  # Only Q is kept.
        result = world.average([matrix] * RANKS)[0]
    assert (result - matrix).norm() < 1.001 * (best - matrix).norm()


def test_all_ranks_have_the_same_bits():
    world = World(3)
    for seed in range(4):
        first, *others = world.average(gradients(seed))
        assert all(torch.equal(first, other) for other in others)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_reaches_all_ranks_and_is_over_with_the_step(value):
    world = World(2)
    world.average(of_rank(2, 0))
    poisoned = of_rank(2, 1)
    poisoned[1][3, 5] = value
    assert all(bool(result.isnan().all()) for result in world.average(poisoned))
    given = of_rank(2, 2)
    for result in world.average(given):
        assert torch.allclose(result, mean(given), atol=1e-3)


def test_a_gradient_that_was_zero_does_not_stay_zero():
    world = World(4)
    zeros = [torch.zeros(ROWS, COLUMNS)] * RANKS
    for _ in range(3):
        assert all(not result.any() for result in world.average(zeros))
    given = of_rank(4, 1)
    assert torch.allclose(world.average(given)[0], mean(given), atol=1e-3)


def test_a_gradient_goes_as_it_is_where_little_would_be_saved():
    from braid.torch.ddp.power_sgd import shape_of

    assert shape_of(torch.empty(100), 1) is None
    assert shape_of(torch.empty(0, 100), 1) is None
    assert shape_of(torch.empty(15, 15), 4) is None
    assert shape_of(torch.empty(16, 16), 4) == (16, 16, 4)
    assert shape_of(torch.empty(100, 3), 4) is None, "rank 3 is the matrix itself"
    assert shape_of(torch.empty(64, 32, 3, 3), 4) == (64, 288, 4)


def test_rows_are_what_is_outermost_in_memory():
    from braid.torch.ddp.power_sgd import shape_of

    assert shape_of(torch.empty(50, 80).T, 2) == (50, 80, 2)
    convolution = torch.empty(64, 32, 3, 3).to(memory_format=torch.channels_last)
    assert shape_of(convolution, 4) == (64, 288, 4)


def test_its_text_is_read():
    from braid.torch.ddp.power_sgd import rank_of

    assert rank_of("powersgd") == 4
    assert rank_of("powersgd:rank=17") == 17
    assert rank_of("int8") is None
    assert rank_of("") is None
    with pytest.raises(ValueError, match="has the parameter rank, as in powersgd:rank=4"):
        rank_of("powersgd:ratio=0.1")
    for wrong in ("0", "257", "-1", "4.5", "", "four", "4,block=2"):
        with pytest.raises(ValueError, match=f"rank is a whole number from 1 to 256, not '{wrong}'"):
            rank_of(f"powersgd:rank={wrong}")


def test_a_rank_that_cannot_be_is_refused_when_it_is_chosen():
    from braid.torch import set_codec

    with pytest.raises(ValueError, match="rank is a whole number"):
        set_codec(torch.nn.Linear(2, 3), "powersgd:rank=0")


@cache
def trained(nodes: int, ranks_per_node: int) -> list[Any]:
    return run("low_rank.py", nodes=nodes, ranks_per_node=ranks_per_node).expect(nodes * ranks_per_node)


def of(way: str, nodes: int, ranks_per_node: int) -> list[Any]:
    results = [result["ways"][way] for result in trained(nodes, ranks_per_node)]
    assert len({result["digest"] for result in results}) == 1
    return results


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_gradients_of_low_rank_train_as_without_it(nodes, ranks_per_node):
    plain = of("plain", nodes, ranks_per_node)
    for mine, other in zip(of("enough", nodes, ranks_per_node), plain):
        assert mine["losses"] == pytest.approx(other["losses"], rel=1e-3)
        assert mine["digest"] != other["digest"], "nothing was encoded"


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
@pytest.mark.parametrize("way", ["few", "some", "accumulated"])
def test_fewer_dimensions_than_the_gradients_have_train_too(nodes, ranks_per_node, way):
    for result in of(way, nodes, ranks_per_node):
        assert sum(result["losses"][-5:]) < 0.7 * sum(result["losses"][:5])


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_a_step_that_is_not_finite_is_over_when_it_is(nodes, ranks_per_node):
    for result in of("poisoned", nodes, ranks_per_node):
        assert result["skipped"] == 1
        assert sum(result["losses"][-5:]) < 0.7 * sum(result["losses"][:5])


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_a_backward_pass_may_be_abandoned(nodes, ranks_per_node):
    for result in of("abandoned", nodes, ranks_per_node):
        assert sum(result["losses"][-5:]) < 0.7 * sum(result["losses"][:5])


def test_a_script_is_told_by_its_environment():
    results = run(
        "coded_training.py", nodes=2, ranks_per_node=1, environment={"BRAID_CODEC": "powersgd:rank=2"}
    ).expect(2)
    assert len({result["digest"] for result in results}) == 1
    for result in results:
        assert sum(result["losses"][-5:]) < 0.7 * sum(result["losses"][:5])
