# SPDX-License-Identifier: Apache-2.0
"""Collectives of GPUs in two levels: NCCL within each node, braid between nodes. The driver is the fake one
(tests/fake_cuda), and so is NCCL (tests/fake_nccl); there are two nodes with two ranks each."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest
from cluster_runs import Run, once, run

torch = pytest.importorskip("torch")

import fake_driver  # noqa: E402

pytestmark = pytest.mark.skipif(
    not fake_driver.NCCL.exists(), reason=f"{fake_driver.NCCL} is not there: it is built with CUDA's headers"
)

BRAID_RUN = (sys.executable, "-m", "braid.torch.launcher")
TRAININGS = [("ddp.py", "braid"), ("ddp.py", "braid", "hook"), ("fsdp2.py", "braid")]
STRICT = {"FAKE_CUDA_QUEUES": "1", "FAKE_CUDA_DEPTH": "8", "FAKE_CUDA_FREE": "locks", "FAKE_CUDA_DRIFT": "7"}
TWO_LEVELS = "go in two levels, NCCL within each node and braid between nodes"


def moved(trainer: str, *arguments: str, launcher: tuple[str, ...] | None = None, **environment: str) -> Run:
    return run(
        "moved_to_gpu.py", trainer, *arguments, nodes=2, ranks_per_node=2, launcher=launcher,
        environment={**fake_driver.TWO_GPUS, **environment},
    )  # fmt: skip


def flat(trainer: str, *arguments: str) -> list[Any]:
    return moved(trainer, *arguments, BRAID_LEVELS="1").expect(4)


def ways_of(results: list[Any]) -> set[str]:
    """What is logged of CUDA tensors, by rank 0 alone and once for each process group."""
    heard = [[text for text in result["gpu"]["heard"] if "CUDA tensors of job" in text] for result in results]
    assert heard[0] and not any(heard[1:])
    return {re.sub(r".*CUDA tensors of job \S+ ", "", text) for text in heard[0]}


def assert_nothing_was_waited_for(results: list[Any]) -> None:
    for result in results:
        seen = result["gpu"]
        assert seen["kernels"] > 0 and seen["collectives"] > 10  # NCCL's.
        assert seen["unregistered_copies"] == seen["missing_pages"] == 0


@pytest.mark.parametrize("trainer", ["collectives.py", pytest.param("exchanges.py", marks=once)])
def test_all_collectives_are_right(trainer):
    """Each is compared with what it should be, and with gloo's."""
    results = moved(trainer).expect(4)
    assert all(mine["compared"] > 200 for mine in results)
    assert ways_of(results) == {TWO_LEVELS}
    assert_nothing_was_waited_for(results)


@pytest.mark.parametrize("environment", [{}, pytest.param(STRICT, marks=once)], ids=["as it comes", "strict"])
@pytest.mark.parametrize("arguments", TRAININGS, ids=str)
def test_training_has_the_losses_of_one_level_and_of_gloo(arguments, environment):
    results = moved(*arguments, **environment).expect(4)
    trainer = arguments[0]
    theirs = run(trainer, "gloo", nodes=2, ranks_per_node=2).expect(4)
    # Additions come in another order.
    for mine, one_level, other in zip(results, flat(*arguments), theirs):
        assert mine["losses"] == pytest.approx(one_level["losses"], rel=1e-4)
        assert mine["losses"] == pytest.approx(other["losses"], rel=1e-4)
    assert len({mine["digest"] for mine in results}) == 1
    assert ways_of(results) == {TWO_LEVELS}
    assert_nothing_was_waited_for(results)


@pytest.mark.parametrize("environment", [{}, {"BRAID_LEVELS": "1"}, {"BRAID_CODEC": "int8"}], ids=str)
def test_an_enabled_script_s_ddp_keeps_its_buckets(environment):
    """Otherwise each of its four gradients, which are not joined here, is in a bucket of its own, and planned."""
    results = moved(
        "unmodified_ddp.py", launcher=BRAID_RUN, BRAID_SMALLEST_TENSOR="0", **environment
    ).expect(4)
    for result in results:
        assert result["bucket_bytes_cap"] == 25 << 20 and result["gpu"]["buckets"] > 0
        assert (result["buckets"], result["planned"]) == ((4, 4) if environment else (1, None))


@once
@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"BRAID_LEVELS": "1"}, "BRAID_LEVELS"),
        ({"BRAID_NCCL_LIBRARY": "/nowhere/libnccl.so.2"}, "no NCCL: /nowhere/libnccl.so.2"),
        ({"FAKE_CUDA_DEVICES": "1"}, "ranks 0 and 1 share a GPU"),
    ],
    ids=["chosen", "no NCCL", "one GPU"],
)
def test_why_tensors_go_over_braid_alone_is_logged(environment, reason):
    results = moved("ddp.py", "braid", **environment).expect(4)
    (way,) = ways_of(results)
    assert way.startswith("go over braid alone: ") and reason in way


@once
@pytest.mark.parametrize("work", ["plain", "ddp"])
def test_a_failing_local_level_ends_training_with_its_name(work):
    done = moved("failure.py", work, "nobody", FAKE_NCCL_ASYNC_ERROR="12:6")
    assert sorted(done.results) == [0, 1, 2, 3], done.output
    for result in done.results.values():
        assert re.search(r"NCCL between ranks \d to \d", result["text"]), result


@once
def test_a_killed_rank_is_named_to_the_others():
    done = moved("failure.py", "ddp")
    assert sorted(done.results) == [0, 2, 3], done.output
    for result in done.results.values():
        assert re.search(r"\brank 1\b", result["again"]), result
