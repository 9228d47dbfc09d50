# SPDX-License-Identifier: Apache-2.0
"""What a script is told that asks for what cannot be."""

from __future__ import annotations

from functools import cache

import pytest
from cluster_runs import run

pytest.importorskip("torch")


@cache
def told() -> dict[str, str]:
    return run("poor_calls.py", nodes=1, ranks_per_node=1).expect(1)[0]["told"]


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("all_reduce float8", "all_reduce of torch.float8_e4m3fn"),
        ("reduce float8", "reduce of torch.float8_e4m3fn"),
        ("all_reduce int16", "all_reduce of torch.int16"),
    ],
)
def test_a_type_that_nobody_reduces_is_named(call, what):
    text = told()[call]
    assert text.startswith(f"TypeError: {what} through gloo on rank 0: neither braid nor gloo reduces this type")


OF_SPARSE = (
    "all_gather", "all_gather_single", "all_to_all", "broadcast", "gather", "reduce", "reduce_scatter", "scatter",
)  # fmt: skip


@pytest.mark.parametrize("call", OF_SPARSE)
def test_sparse_tensors_are_for_all_reduce_alone(call):
    text = told()[f"{call} sparse"]
    assert text.startswith("TypeError: braid: a tensor has the layout torch.sparse_coo, which only all_reduce")


def test_a_count_that_is_none_is_named():
    right = "right is a whole number, 0 to 18446744073709551615"
    assert told()["count"] == f"InvalidArgumentError: the count of tensor 'some' is -1; {right}"
    assert told()["large count"].endswith(f"is 18446744073709551616; {right}")


def test_a_nul_character_in_a_name_is_named():
    assert "a tensor's name is 'some\\x00thing', which has a NUL character in it" in told()["name"]


def test_the_variable_of_an_unknown_codec_is_named():
    text = told()["codec"]
    assert "BRAID_CODEC=int9: tensor 'ddp1/" in text
    assert "no codec is named 'int9'; there are none, bf16, fp16, int8" in text


def test_a_group_of_another_backend_is_named():
    assert "needs a process group of the backend braid, this one is of the backend gloo" in told()["group"]
