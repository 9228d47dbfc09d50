# SPDX-License-Identifier: Apache-2.0
"""Training with tensors on a GPU, over libbraid and a daemon: everything has the bits that it has in the CPU's memory.
The GPU is the fake driver's (tests/fake_cuda)."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import Any

import pytest
from cluster_runs import once, run

torch = pytest.importorskip("torch")

import fake_driver  # noqa: E402

pytestmark = pytest.mark.skipif(
    not fake_driver.LIBRARY.exists(), reason=f"{fake_driver.LIBRARY} is not there: it is built with CUDA's headers"
)

TRAININGS = [("ddp.py", "braid"), ("ddp.py", "braid", "hook"), ("fsdp2.py", "braid")]
KILLED = 128 + 9
# One queue for all streams, calls that wait where it is full, and frees that wait for an idle GPU under a lock.
STRICT = {"FAKE_CUDA_QUEUES": "1", "FAKE_CUDA_DEPTH": "8", "FAKE_CUDA_FREE": "locks", "FAKE_CUDA_DRIFT": "7"}


def on_gpu(trainer: str, *arguments: str, nodes: int = 2, ranks_per_node: int = 1, **environment: str) -> list[Any]:
    done = run(
        "moved_to_gpu.py", trainer, *arguments, nodes=nodes, ranks_per_node=ranks_per_node,
        environment={**fake_driver.ENVIRONMENT, **environment},
    )  # fmt: skip
    return done.expect(nodes * ranks_per_node)


@cache
def on_cpu(trainer: str, *arguments: str, nodes: int = 2, ranks_per_node: int = 1) -> list[Any]:
    return run(trainer, *arguments, nodes=nodes, ranks_per_node=ranks_per_node).expect(nodes * ranks_per_node)


def assert_went_from_gpu(results: list[Any], *, threads_wait: bool = False) -> None:
    for result in results:
        seen = result["gpu"] if "gpu" in result else result
        assert seen["copies"] > 0
        assert seen["unregistered_copies"] == seen["missing_pages"] == 0
        # Not even once, and in no thread.
        assert threads_wait or (seen["host_waits"] == 0 and seen["holds_of"] == [])


def assert_same(ours: list[Any], theirs: list[Any]) -> None:
    for mine, other in zip(ours, theirs):
        assert len(mine["losses"]) > 5
        assert mine["losses"] == other["losses"] and mine["digest"] == other["digest"]


@pytest.mark.parametrize("trainer", ["collectives.py", pytest.param("exchanges.py", marks=once)])
def test_all_collectives(trainer):
    results = on_gpu(trainer, nodes=2, ranks_per_node=2)
    theirs = on_cpu(trainer, nodes=2, ranks_per_node=2)
    assert [mine["compared"] for mine in results] == [other["compared"] for other in theirs]
    assert all(mine["gpu"]["collectives"] > 200 for mine in results)
    for result in results:
        # What gloo carries is waited for.
        assert result["gpu"]["host_waits"] == 0 and set(result["gpu"]["holds_of"]) <= {"MainThread"}


@once
def test_meshes_and_distributed_tensors():
    results = on_gpu("groups.py", nodes=2, ranks_per_node=2)
    theirs = on_cpu("groups.py", nodes=2, ranks_per_node=2)
    assert all(mine["done"] == other["done"] for mine, other in zip(results, theirs))
    assert_went_from_gpu(results)


@pytest.mark.parametrize("environment", [{}, STRICT], ids=["as it comes", "strict"])
@pytest.mark.parametrize("arguments", TRAININGS, ids=str)
def test_training(arguments, environment):
    results = on_gpu(*arguments, **environment)
    assert_same(results, on_cpu(*arguments))
    assert_went_from_gpu(results)
    hooked = "hook" in arguments
    assert all((mine["gpu"]["buckets"] > 0) == hooked and mine["gpu"]["collectives"] > 10 for mine in results)


@once
@pytest.mark.parametrize("arguments", TRAININGS[1:], ids=str)
def test_where_threads_are_to_wait_everything_is_as_it_was(arguments):
    results = on_gpu(*arguments, BRAID_CUDA_WAIT="host")
    assert_same(results, on_cpu(*arguments))
    assert_went_from_gpu(results, threads_wait=True)


@once
@pytest.mark.parametrize("arguments", TRAININGS[1:], ids=str)
def test_over_an_old_driver_tensors_are_copied_through_the_memory_of_the_cpu(arguments):
    done = run(
        "moved_to_gpu.py", *arguments, nodes=2, ranks_per_node=1,
        environment={**fake_driver.ENVIRONMENT, "FAKE_CUDA_VERSION": "11060"},
    )  # fmt: skip
    results = done.expect(2)
    assert_same(results, on_cpu(*arguments))
    assert all(mine["gpu"]["copies"] == 0 for mine in results)
    told = [["are copied through the CPU's memory" in text for text in mine["gpu"]["heard"]] for mine in results]
    assert [sum(texts) for texts in told] == [1, 0]


@pytest.mark.parametrize("shape", [(2, 1), pytest.param((1, 2), marks=once)], ids=str)
def test_optimizers_of_braid(shape):
    nodes, ranks_per_node = shape
    done = run(
        "gpu_methods.py", nodes=nodes, ranks_per_node=ranks_per_node, environment=fake_driver.ENVIRONMENT
    )  # fmt: skip
    results = done.expect(2)
    for result in results:
        assert len(result["same"]) > 6 and all(result["same"].values()), result["same"]
        # A copy each way for each gradient is the least that travels.
        assert all(count > 20 for count in result["copies"].values()), result["copies"]
    assert_went_from_gpu([{**result["counts"], "holds_of": result["holds_of"]} for result in results])


@once
@pytest.mark.parametrize("work", ["plain", "asynchronous", "ddp", "planned"])
def test_a_killed_rank_is_named_to_the_others(work):
    launcher = None
    if work == "planned":  # braid-run puts the hook under DDP.
        work, launcher = "ddp", (sys.executable, "-m", "braid.torch.launcher")
    done = run(
        "moved_to_gpu.py", "failure.py", work, nodes=3, ranks_per_node=1, launcher=launcher,
        environment=fake_driver.ENVIRONMENT,
    )  # fmt: skip
    assert done.exit_code == KILLED, done.output
    assert sorted(done.results) == [0, 2], done.output
    for result in done.results.values():
        assert re.search(r"\brank 1\b", result["text"]), result
        assert re.search(r"\brank 1\b", result["again"]), result


@once
def test_a_sum_that_a_killed_rank_owes_is_nan():
    """The stream goes on behind it, and the next call says why."""
    done = run("lost_sums.py", nodes=2, ranks_per_node=1, environment=fake_driver.ENVIRONMENT)
    assert done.exit_code == KILLED, done.output
    assert 0 in done.results, done.output
    result = done.results[0]
    assert result["good"] == [2.0] and result["lost"] is True and result["integers"] == [-1], result
    assert re.search(r"\brank 1\b", result["error"]), result
