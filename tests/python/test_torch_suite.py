# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of torch.distributed: what passes over gloo passes over braid.

torch_suite/run.py runs them, torch_suite/list_gloo.py makes the list of what passes over gloo.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cluster_runs import CLUSTER, DEADLINE_S, once

torch = pytest.importorskip("torch")
SUITE = Path(__file__).resolve().parent / "torch_suite"

# What passes over gloo and is not asked of braid, and why.
LEFT_OUT = {
    "test_get_backend": "the script asks for gloo, and is told what it got: braid",
    "test_barrier_timeout_global": "gives 1 s for making a group, which a busy machine may need; "
    "test_as_gloo.py looks at the same words",
    "test_barrier_timeout_full_group": "as test_barrier_timeout_global",
}
# What looks at DDP's buckets, which hold one parameter each unless BRAID_KEEP_BUCKETS=1 is set.
KEEPS_BUCKETS = {
    "test_ddp_logging_data_cpu": "compares the bucket sizes that DDP logs with its defaults",
}


# With three ranks these pass over the gloo of torch 2.7 alone.
PASSES_BEFORE_2_8 = ("test_gather_object", "test_gather_object_subgroup")


def passing_over_gloo(ranks: int) -> list[str]:
    lines = [line.split() for line in (SUITE / "passes-over-gloo.txt").read_text().splitlines()]
    return [name for name, *sizes in lines if str(ranks) in sizes]


def failures(ranks: int, names: list[str], *options: str) -> list[str]:
    """Runs these tests over braid, one node for each rank; says what did not pass."""
    done = subprocess.run(
        [
            CLUSTER, "--loopback", "--nodes", str(ranks), "--timeout", str(DEADLINE_S), "--",
            sys.executable, str(SUITE / "run.py"), "braid", *options, "--only", *names,
        ],
        capture_output=True, text=True, timeout=DEADLINE_S + 30, check=False,
        env={"PYTHONFAULTHANDLER": "1", **os.environ},
    )  # fmt: skip
    mark = '{"name"'
    found = [line[line.index(mark) :] for line in done.stdout.splitlines() if mark in line]
    results = {result["name"]: result for result in map(json.loads, found)}
    assert done.returncode == 0 and sorted(results) == sorted(names), done.stdout + done.stderr
    return [
        f"{name} {result['outcome']} over braid\n{result.get('output', '')}"
        for name, result in sorted(results.items())
        if result["outcome"] != "passed"
    ]


@pytest.mark.parametrize(
    "ranks", [pytest.param(2, marks=once), 3, pytest.param(4, marks=once)]
)
def test_what_passes_over_gloo_passes_over_braid(ranks):
    old = tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 8)
    passing = [*passing_over_gloo(ranks), *(PASSES_BEFORE_2_8 if old else ())]
    names = [name for name in passing if name not in LEFT_OUT]
    usual = [name for name in names if name not in KEEPS_BUCKETS]
    kept = [name for name in names if name in KEEPS_BUCKETS]
    assert len(usual) > 80 and kept  # Most of the 285 need GPUs.
    found = failures(ranks, usual) + failures(ranks, kept, "--keep-buckets")
    assert not found, "\n\n".join(found)
