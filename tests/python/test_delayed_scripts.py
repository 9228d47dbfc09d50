# SPDX-License-Identifier: Apache-2.0
"""BRAID_UPDATE: scripts with torch.optim.SGD are delayed, and others train as ever."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from cluster_runs import once, run

pytest.importorskip("torch")
pytestmark = once


def trained(how: str, update: str, *, ranks_per_node: int = 2, nodes: int = 2) -> tuple[list[Any], str]:
    environment = {"BRAID_ENABLE": "1", "BRAID_UPDATE": update}
    done = run(
        "unmodified_sgd.py", how, nodes=nodes, ranks_per_node=ranks_per_node, environment=environment
    )
    results = done.expect(nodes * ranks_per_node)
    for result in results:
        assert sum(result["losses"][-5:]) < 0.5 * sum(result["losses"][:5])
    return results, done.output


@pytest.mark.parametrize("how", ["ddp", "plain"])
@pytest.mark.parametrize("update", ["od-sgd:warmup_steps=5", "cd-sgd:warmup_steps=5,threshold=0.02"])
def test_a_script_is_delayed_and_saves_the_global_state(update, how):
    results, output = trained(how, update)
    assert len({result["apart"] for result in results}) == 2, "nodes differ before the end"
    assert len({result["saved"] for result in results}) == 1
    assert "BRAID_UPDATE" not in output


def test_a_script_that_pulls_rarely_saves_what_it_pulled_last():
    # 41 steps: 5 of warm-up, 36 of which the last one pulls.
    results, _ = trained("ddp", "ssd-sgd:warmup_steps=5,pull_every=4")
    assert len({result["saved"] for result in results}) == 1
    results, _ = trained("ddp", "ssd-sgd:warmup_steps=5,pull_every=5")
    assert len({result["saved"] for result in results}) == 1


@pytest.mark.parametrize(
    ("how", "update", "text"),
    [
        ("adamw", "od-sgd", "BRAID_UPDATE=od-sgd: AdamW is not delayed: that is for torch.optim.SGD itself"),
        ("hook", "od-sgd", "not delayed: a DistributedDataParallel has a hook of the script's"),
        ("many", "od-sgd", "not delayed: it has 3004 parameters, and 3000 are the most"),
        ("ddp", "ssd-sgd:local=sgd,pull_every=7", "a torch.optim.SGD is not delayed: ssd-sgd with local"),
    ],
)
def test_what_cannot_be_delayed_trains_as_ever_and_is_told(how, update, text):
    results, output = trained(how, update)
    assert text in output
    assert len({result["apart"] for result in results}) == 1


@pytest.mark.parametrize(
    ("update", "text"),
    [
        ("od-sgb", "braid: BRAID_UPDATE is 'od-sgb': method is one of od-sgd, ssd-sgd, cd-sgd, not 'od-sgb'"),
        ("cd-sgd", "braid: BRAID_UPDATE is 'cd-sgd': cd-sgd needs a threshold above 0"),
    ],
)
def test_a_method_that_there_is_not_ends_the_script(update, text):
    done = subprocess.run(
        [sys.executable, "-c", "import torch; print('goes on')"], capture_output=True, text=True, check=False,
        env={**os.environ, "BRAID_ENABLE": "1", "BRAID_UPDATE": update},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(text) and done.stderr.count("\n") == 1


def test_one_rank_has_nobody_to_wait_for():
    _, output = trained("ddp", "od-sgd", nodes=1, ranks_per_node=1)
    assert "a torch.optim.SGD is not delayed: its process group has one rank" in output


def test_a_group_of_another_backend_is_left_alone():
    environment = {"BRAID_UPDATE": "od-sgd"}
    done = run("unmodified_sgd.py", "ddp", nodes=2, ranks_per_node=1, environment=environment)
    results = done.reported(2)
    assert len({result["apart"] for result in results}) == 1
    assert "BRAID_UPDATE" not in done.output, "without BRAID_ENABLE it says nothing"
