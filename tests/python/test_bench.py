# SPDX-License-Identifier: Apache-2.0
"""bench/collectives.py measures what it says, over both."""

from __future__ import annotations

import re

import pytest
from cluster_runs import REPOSITORY, once, run

pytest.importorskip("torch")

COLLECTIVES = (
    "all_reduce", "all_reduce_bf16", "reduce_scatter", "all_gather", "broadcast", "all_to_all",
    "gather", "scatter",
)  # fmt: skip


@once
def test_every_collective_is_measured_over_both():
    arguments = ("--bytes", "1e5", "--iterations", "2", "--repeats", "2")
    done = run(str(REPOSITORY / "bench/collectives.py"), *arguments, nodes=2, ranks_per_node=1)
    assert done.exit_code == 0, done.output
    told = re.findall(r"^\[0\] (\w+) +[\d.]+ +[\d.]+ +[\d.]+$", done.output, re.MULTILINE)
    assert told == list(COLLECTIVES), done.output
