# SPDX-License-Identifier: Apache-2.0
"""torchcomms over braid, and torch's own way through torchcomms. torchcomms is not on PyPI (a placeholder is): build it
from its sources against this torch, with every vendor's backend off, to run these."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any

import pytest
from cluster_runs import once, run

pytestmark = once


@cache
def importable() -> bool:
    """In a process of its own: what it loads is C++ of one torch, and may end the process."""
    code = "import torch, torchcomms; torchcomms.TorchCommBackend"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=600)
    return done.returncode == 0


@cache
def alone() -> list[Any]:
    if not importable():
        pytest.skip("torchcomms is not installed for this torch (PyPI has only a placeholder)")
    return run("comms.py", nodes=2, ranks_per_node=2).expect(4)


def test_every_collective_of_a_communicator_is_right_at_once_and_later():
    for result in alone():
        assert result["backend"] == "braid" and result["wrong"] == []
        assert len(result["collectives"]) == 17


def test_a_split_makes_communicators_of_its_ranks():
    assert [result["sums"] for result in alone()] == [[1.0, 3.0], [1.0, 3.0], [5.0, 3.0], [5.0]]


def test_communicators_are_made_by_the_scripts_store_and_beside_one_at_the_master_port():
    assert [result["by_store"] for result in alone()] == [64.0] * 4


def test_what_cannot_be_is_refused_with_what_would_be_right():
    for result in alone():
        factor, ranks, unmade = result["refused"]
        assert "multiply the tensor by it and take SUM" in factor
        assert "ranks are 0 to 3" in ranks
        assert "new_comm() and split() have not made it" in unmade


def test_set_timeout_ends_a_collective_that_nobody_else_starts():
    first = alone()[0]["late"]
    assert " 1000 ms" in first, first


def test_groups_of_torch_distributed_come_by_torchcomms():
    if not importable():
        pytest.skip("torchcomms is not installed for this torch (PyPI has only a placeholder)")
    enabled = {"TORCH_DISTRIBUTED_USE_TORCHCOMMS": "1"}
    results = run("comms.py", "c10d", nodes=2, ranks_per_node=2, environment=enabled).expect(4)
    for rank, result in enumerate(results):
        assert result["wrapper"] == "_BackendWrapper" and result["sum"]
        assert result["objects"] == [0, 1, 2, 3]
        assert result["half"] == (1.0 if rank < 2 else 5.0)
        assert result["gradient"] == 6.0  # 4 rows of 0, 1, 2, 3: the mean over ranks.
