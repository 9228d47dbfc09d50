# SPDX-License-Identifier: Apache-2.0
"""Training with braid gives the model that gloo gives, and the same bits each time."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import pytest
from cluster_runs import ON_LOOPBACK, SHAPES, once, run

torch = pytest.importorskip("torch")
# torch 2.7's gloo gives FSDP2 a sum where it asks for an average.
AVERAGES = tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 8)


@cache
def with_gloo(trainer: str, *arguments: str) -> list[Any]:
    """The same training where braid is not. What its ranks report counts, and not how they end: rarely one of
    them dies, which says nothing about braid (GOTCHAS.md)."""
    for _ in range(3):
        done = run(trainer, *arguments, nodes=4, ranks_per_node=1, options=("--no-daemons",))
        if len(done.results) == 4:
            break
    return done.reported(4)


def ddp_with_braid(nodes: int, ranks_per_node: int, *hook: str, options: tuple[str, ...] = ()) -> list[Any]:
    return run("ddp.py", "braid", *hook, nodes=nodes, ranks_per_node=ranks_per_node, options=options).expect(4)


def assert_same_training(ours: list[Any], theirs: list[Any]) -> None:
    for mine, other in zip(ours, theirs):
        assert len(mine["losses"]) == len(other["losses"]) > 5
        assert mine["losses"] == pytest.approx(other["losses"], rel=1e-5)
        assert mine["norm"] == pytest.approx(other["norm"], rel=1e-5)
    if "sample" in ours[0]:
        mine, other = torch.tensor(ours[0]["sample"]), torch.tensor(theirs[0]["sample"])
        assert (mine - other).norm() <= 1e-5 * other.norm()


def assert_same_bits(results: list[Any]) -> None:
    assert len({result["digest"] for result in results}) == 1


HOOKS = pytest.mark.parametrize("hook", [(), ("hook",)], ids=["default", "hook"])


@HOOKS
@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_ddp_trains_as_with_gloo(nodes, ranks_per_node, hook):
    ours = ddp_with_braid(nodes, ranks_per_node, *hook)
    assert_same_bits(ours)
    assert_same_training(ours, with_gloo("ddp.py", "gloo"))


@once
@pytest.mark.skipif(ON_LOOPBACK, reason="needs nodes with networks of their own")
def test_ddp_trains_where_there_is_no_ipv4():
    assert_same_bits(ddp_with_braid(4, 1, options=("--ipv6",)))


@once
@HOOKS
@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_two_runs_give_the_same_bits(nodes, ranks_per_node, hook):
    # Plans that are made from what was measured differ between runs, and so does the order of additions.
    options = ("--set", "plan.planner=first")
    runs = [ddp_with_braid(nodes, ranks_per_node, *hook, options=options) for _ in range(2)]
    assert_same_bits(runs[0] + runs[1])


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(2, 1), pytest.param(1, 2, marks=once)])
@pytest.mark.parametrize("start", ["hook", "unmodified"])
# Each gradient by itself, or all of these small models' as one tensor.
@pytest.mark.parametrize("smallest", ["0", pytest.param("", marks=once)])
def test_ddp_in_every_way_trains_as_with_gloo(smallest, start, nodes, ranks_per_node):
    launcher = (sys.executable, "-m", "braid.torch.launcher") if start == "unmodified" else None
    results = run(
        "ddp_ways.py", start, launcher=launcher, nodes=nodes, ranks_per_node=ranks_per_node,
        environment={"BRAID_SMALLEST_TENSOR": smallest},
    ).expect(2)  # fmt: skip
    assert all(len(result["done"]) > 20 for result in results)


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_fsdp2_trains_as_with_gloo(nodes, ranks_per_node):
    ours = run("fsdp2.py", "braid", nodes=nodes, ranks_per_node=ranks_per_node).expect(4)
    assert_same_bits(ours)
    if AVERAGES:
        assert_same_training(ours, with_gloo("fsdp2.py", "gloo"))
