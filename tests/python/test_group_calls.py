# SPDX-License-Identifier: Apache-2.0
"""Calls of torch.distributed that reach groups in C++ only: braid's hear them as well."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from cluster_runs import run

torch = pytest.importorskip("torch")

from in_process import run_ranks  # noqa: E402
from torch.distributed import ReduceOp  # noqa: E402


@cache
def timed() -> list[Any]:
    return run("timeouts.py", nodes=2, ranks_per_node=1).expect(2)


def test_a_shorter_timeout_ends_an_operation():
    assert "2000 ms" in timed()[0]["shorter"]


def test_a_longer_timeout_waits_for_a_late_rank():
    assert [result["longer"] for result in timed()] == [2.0, 2.0]


def test_an_extension_is_for_the_next_operation_alone():
    first, second = timed()
    assert first["extended"][0] == second["extended"][0] == 2.0
    assert "2000 ms" in first["extended"][1]


def test_gradients_of_ddp_have_the_timeout_that_was_set():
    assert "2000 ms" in timed()[0]["gradients"]


def test_a_receive_has_the_timeout_that_was_set():
    text = timed()[0]["received"]
    assert "receive of 12 bytes, tag 0, at rank 0" in text and "did not end within 2000 ms" in text


def test_a_group_s_reduce_takes_the_root_and_then_the_operation():
    def work(group, world):
        tensors = [torch.tensor([group.rank() + 1.0]) for _ in range(3)]
        group.reduce(tensors[0], 1).wait()
        group.reduce(tensors[1], 1, ReduceOp.MAX).wait()
        group.reduce(tensors[2], root=1).wait()
        return [tensor.item() for tensor in tensors]

    assert run_ranks(2, work)[1] == [3.0, 2.0, 3.0]


@cache
def split() -> list[Any]:
    return run("splitting.py", nodes=2, ranks_per_node=2).expect(4)


def test_split_group_makes_groups_of_the_parents_ranks():
    results = split()
    assert [result["sums"] for result in results] == [
        [1.0, 1.0, 0.0, 5.0, 6.0], [1.0, 1.0, 1.0, 6.0], [5.0, 5.0, 5.0, 6.0], [5.0, 5.0, 5.0, 6.0],
    ]  # fmt: skip
    assert [result["is_member"] for result in results] == [True, False, True, True]
    assert all(result["backends"] == ["braid"] and result["described"] == "mine" for result in results)


def test_split_group_orders_ranks_as_this_torch_does():
    keeps_order = hasattr(torch.distributed.ProcessGroup, "split_group")
    first = [1, 0] if keeps_order else [0, 1]
    assert [result["half"][1] for result in split()] == [first, first, [2, 3], [2, 3]]
    assert [result["half"][0] for result in split()] == [*(first), 0, 1]


def test_splits_that_cannot_be_and_shrinking_are_refused_on_all_ranks():
    for result in split():
        texts = result["refusals"]
        assert "rank 1 comes twice" in texts[0] and "ranks are 0 to 3" in texts[1]
        assert "cannot be empty" in texts[2] and "None or empty" in texts[3]
        assert len(texts) == 4 or "does not shrink" in texts[4]
