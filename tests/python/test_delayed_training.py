# SPDX-License-Identifier: Apache-2.0
"""Delayed and local training through real daemons."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import quadratics
from cluster_runs import once, run

torch = pytest.importorskip("torch")
pytestmark = once

# As trainers/delayed.py has them.
CENTRES = (1.0, -3.0, 2.5, 7.0)
METHODS = {
    "od": {},
    "od dc": {"local": "dc"},
    "od adc": {"local": "adc"},
    "ssd": {"pull_every": 3},
    "ssd glu": {"local": "glu", "pull_every": 5},
}


@cache
def trained(nodes: int, ranks_per_node: int) -> list[Any]:
    # One plan for all: else trainings that are compared bit by bit add in another order.
    options = ("--set", "plan.planner=first")
    return run("delayed.py", nodes=nodes, ranks_per_node=ranks_per_node, options=options).expect(4)


def of(way: str, shape: tuple[int, int]) -> list[Any]:
    return [result["ways"][way] for result in trained(*shape)]


def assert_follows(results: list[Any], expected: tuple[list[list[float]], float]) -> None:
    xs, w = expected
    for result, x in zip(results, xs):
        assert result["seen"] == pytest.approx(x, rel=1e-12, abs=1e-12)
        assert result["end"] == pytest.approx(w, rel=1e-12, abs=1e-12)
    assert len({result["end"] for result in results}) == 1


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("shape", [(2, 2), (4, 1)])
def test_workers_that_are_ranks_follow_the_recurrence(shape, name):
    expected = quadratics.recurrence(CENTRES, 21, momentum=0.8, decay=0.02, **METHODS[name])
    assert_follows([result["ranks"][name] for result in trained(*shape)], expected)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("shape", [(2, 2), (4, 1)])
def test_workers_that_are_nodes_follow_the_recurrence(shape, name):
    results = trained(*shape)
    nodes = [result["node"] for result in results]
    assert len(set(nodes)) == shape[0]
    expected = quadratics.recurrence(CENTRES, 21, nodes=nodes, momentum=0.8, decay=0.02, **METHODS[name])
    assert_follows([result["nodes"][name] for result in results], expected)


WAYS = (
    "synchronous", "od", "od ddp", "od bf16", "ssd", "cd", "cd all full", "diloco", "diloco streaming", "post-local",
    "post-local ddp",
)  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", [(2, 2), (4, 1)])
def test_it_trains_and_all_ranks_end_with_the_same_bits(shape, way):
    results = of(way, shape)
    assert len({result["digest"] for result in results}) == 1
    for result in results:
        assert sum(result["losses"][-5:]) < 0.5 * sum(result["losses"][:5])


@pytest.mark.parametrize("way", ["od", "ssd", "cd"])
@pytest.mark.parametrize("shape", [(2, 2), (4, 1)])
def test_before_the_end_nodes_differ_and_ranks_of_a_node_do_not(shape, way):
    results = trained(*shape)
    by_node = {(result["node"], result["ways"][way]["apart"]) for result in results}
    assert len(by_node) == shape[0]
    assert len({digest for _, digest in by_node}) == shape[0]


@pytest.mark.parametrize("shape", [(2, 2), (4, 1)])
def test_the_ways_are_different_ones(shape):
    first = trained(*shape)[0]["ways"]
    digests = {way: first[way]["digest"] for way in WAYS}
    assert digests["od"] == digests["od ddp"] == digests["cd all full"]
    different = [way for way in WAYS if way not in ("od ddp", "cd all full", "post-local ddp")]
    assert len({digests[way] for way in different}) == len(different)


@pytest.mark.parametrize("shape", [(2, 2), (4, 1)])
def test_a_step_goes_on_without_a_rank_that_is_late_and_the_next_one_does_not(shape):
    results = [result["blocked"] for result in trained(*shape)]
    for result in results[:3]:
        assert [result[name] for name in ("went on", "knew more", "went further")] == [True, False, False]
        assert result["knew in the end"]
    assert len({result["digest"] for result in results}) == 1


@pytest.mark.parametrize("shape", [(2, 2), (4, 1)])
def test_a_run_that_is_loaded_goes_on_as_the_one_that_was_saved(shape):
    for result in trained(*shape):
        assert len(set(result["resumed"])) == 1


@pytest.mark.parametrize("way", ["post-local", "post-local ddp"])
@pytest.mark.parametrize("shape", [(2, 2), (4, 1)])
def test_post_local_sgd_is_synchronous_at_first_and_local_afterwards(shape, way):
    results = of(way, shape)
    assert all(result["warm"] == results[0]["warm"] for result in results)
    assert len({result["apart"] for result in results}) == 4


def test_several_optimizers_have_their_tensors_in_flight_together():
    for result in run("many_weights.py", nodes=2, ranks_per_node=1).expect(2):
        assert result["right"]
        assert "2500 parameters are to be updated by the daemons, beside 5000 of other optimizers" in result["text"]
