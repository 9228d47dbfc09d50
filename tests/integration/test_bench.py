# SPDX-License-Identifier: Apache-2.0
"""braid-bench on real daemons: shapes, sizes, element types, and what it prints."""

import json
import os

import pytest
from braid_build import BENCH, BRAIDD, BUILD, IS_SANITIZED, PATIENCE_S, ran
from cluster_tool import CLUSTER
from real_cluster import needs_daemons

pytestmark = needs_daemons

KEYS = [
    "bytes", "dtype", "ranks", "nodes", "median_seconds", "p99_seconds", "bus_gbit_per_second",
    "cpu_seconds", "checking_cpu_seconds", "flows", "transport",
]  # fmt: skip
# One float, two, three, five, one more than a multiple of 64 bytes, and what DDP sends.
SIZES = [4, 8, 12, 20, 4100, 399_996, 26_214_400]


def bench(
    nodes: int,
    ranks_per_node: int,
    *arguments: str,
    settings: tuple = (),
    sizes: list[int] = SIZES,
    ends: int = 0,
) -> list[dict]:
    done = ran(
        [
            CLUSTER, "--nodes", str(nodes), "--ranks-per-node", str(ranks_per_node),
            "--daemon", BRAIDD, "--timeout", str(PATIENCE_S),
            *[part for setting in settings for part in ("--set", setting)],
            "--", BENCH, "allreduce", "--sizes", ",".join(map(str, sizes)),
            "--iterations", "3", *arguments,
        ],
        timeout=PATIENCE_S + 30,
    )  # fmt: skip
    assert done.returncode == ends, done.stdout + done.stderr
    lines = [line.removeprefix("[0] ") for line in done.stdout.splitlines()]
    return [json.loads(line) for line in lines] if "--json" in arguments else lines


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(1, 2), (4, 1), (2, 2), (3, 1), (1, 1)])
def test_every_shape_adds_up_and_says_what_was_measured(nodes, ranks_per_node):
    measured = bench(nodes, ranks_per_node, "--json")
    assert [one["bytes"] for one in measured] == SIZES
    for one in measured:
        assert list(one) == KEYS
        assert (one["nodes"], one["ranks"]) == (nodes, nodes * ranks_per_node)
        assert one["dtype"] == "float32" and one["median_seconds"] > 0
        assert one["p99_seconds"] >= one["median_seconds"]
        assert (one["flows"] > 0) == (nodes > 1)
        assert "tcp on eth0" in one["transport"]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(("transport.io_threads=2",), id="two I/O loops"),
        pytest.param(
            ("collective.unit_bytes=64KiB", "transport.chunk_bytes=4KiB", "collective.streams=3"),
            id="many small units",
        ),
        pytest.param(
            (
                "transport.io_threads=3", "collective.unit_bytes=65600", "collective.streams=64",
                "transport.chunk_bytes=4160", "transport.window_bytes=4160",
                "transport.flows_per_link=1",
            ),
            id="odd units one chunk under way",
        ),
    ],
)  # fmt: skip
def test_every_way_of_cutting_adds_up(settings):
    sizes = [4, 65_540, 3_000_004]
    measured = bench(3, 1, "--json", settings=settings, sizes=sizes)
    assert [one["bytes"] for one in measured] == sizes


needs_driver = pytest.mark.skipif(IS_SANITIZED, reason="the driver without a GPU is loaded at run time")
DRIVER = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "lib" / "fake_cuda")}


@needs_driver
def test_a_gpus_memory_is_measured_beside_the_cpus():
    done = ran(
        [
            CLUSTER, "--nodes", "2", "--daemon", BRAIDD, "--timeout", str(PATIENCE_S),
            "--", BENCH, "device", "--sizes", "4,400kB,20MB", "--iterations", "2", "--json",
        ],
        timeout=PATIENCE_S + 30,
        env=DRIVER,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    measured = [json.loads(line.removeprefix("[0] ")) for line in done.stdout.splitlines()]
    assert [one["bytes"] for one in measured] == [4, 400_000, 20_000_000]
    for one in measured:
        assert one["ranks"] == 2 and one["driver_call_seconds"] > 0
        for way in ("device", "host"):
            # What holds the thread is a part of what the result takes.
            assert 0 < one[f"{way}_held_median_seconds"] < one[f"{way}_p99_seconds"]
            assert 0 < one[f"{way}_median_seconds"] <= one[f"{way}_p99_seconds"]


@needs_driver
def test_a_machine_without_a_gpu_is_told():
    without = {**DRIVER, "FAKE_CUDA_DEVICES": "0"}
    done = ran([BENCH, "device", "--sizes", "4", "--socket", "/nowhere"], timeout=PATIENCE_S, env=without)
    assert done.returncode == 1 and "there is no GPU that can be used" in done.stderr
