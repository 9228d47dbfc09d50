# SPDX-License-Identifier: Apache-2.0
"""braid-bench on real daemons: shapes, sizes, element types, and what it prints."""

import json
import os

import pytest
from braid_build import BENCH, BRAIDD, BUILD, IS_SANITIZED, PATIENCE_S, ran
from cluster_tool import CLUSTER
from real_cluster import needs_daemons

pytestmark = needs_daemons

needs_plain_build = pytest.mark.skipif(IS_SANITIZED, reason="a library takes the place of another one")
KEYS = [
    "collective", "bytes", "count", "dtype", "reduction", "root", "ranks", "nodes", "mean_seconds", "median_seconds",
    "p99_seconds", "algbw_gigabytes_per_second", "busbw_gigabytes_per_second", "wrong", "cpu_seconds",
    "checking_cpu_seconds", "flows", "transport",
]  # fmt: skip
# nccl-tests, doc/PERFORMANCE.md, for four ranks; gather and scatter as in its sources.
FACTORS = {
    "all_reduce": 1.5, "broadcast": 1.0, "all_gather": 0.75, "reduce_scatter": 0.75, "gather": 0.75, "scatter": 0.75,
    "all_to_all": 0.75,
}  # fmt: skip
WHOLE = {"all_reduce", "broadcast"}
ROOTED = {"broadcast", "gather", "scatter"}
REDUCING = {"all_reduce", "reduce_scatter"}
# One float, two, three, five, one more than a multiple of 64 bytes, and what DDP sends.
SIZES = [4, 8, 12, 20, 4100, 399_996, 26_214_400]


def bench(nodes: int, ranks_per_node: int, *arguments: str, settings: tuple = (), ends: int = 0) -> list[str]:
    """What rank 0 prints."""
    done = ran(
        [
            CLUSTER, "--nodes", str(nodes), "--ranks-per-node", str(ranks_per_node),
            "--daemon", BRAIDD, "--timeout", str(PATIENCE_S),
            *[part for setting in settings for part in ("--set", setting)],
            "--", BENCH, *arguments,
        ],
        timeout=PATIENCE_S + 30,
    )  # fmt: skip
    assert done.returncode == ends, done.stdout + done.stderr
    return [line.removeprefix("[0] ") for line in done.stdout.splitlines()]


def measured_by(*arguments, **others) -> list[dict]:
    return [json.loads(line) for line in bench(*arguments, "--iters", "3", "--check", "3", "--json", **others)]


def sizes(*numbers: int) -> tuple[str, str]:
    return "--sizes", ",".join(map(str, numbers))


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(1, 2), (4, 1), (2, 2), (3, 1), (1, 1)])
def test_every_shape_adds_up_and_says_what_was_measured(nodes, ranks_per_node):
    measured = measured_by(nodes, ranks_per_node, "all_reduce", *sizes(*SIZES))
    assert [one["bytes"] for one in measured] == SIZES
    for one in measured:
        assert list(one) == KEYS
        assert (one["nodes"], one["ranks"]) == (nodes, nodes * ranks_per_node)
        assert one["dtype"] == "float32" and one["median_seconds"] > 0 and one["wrong"] == 0
        assert one["p99_seconds"] >= max(one["median_seconds"], one["mean_seconds"])
        assert (one["flows"] > 0) == (nodes > 1)
        assert "TCP on eth0" in one["transport"]


@pytest.mark.parametrize("name", FACTORS)
def test_every_collective_over_a_range(name):
    arguments = ["-b", "8", "-e", "1M", "-f", "2"]
    if name in ROOTED:
        arguments += ["-r", "3"]
    measured = measured_by(2, 2, name, *arguments)
    # Where each of the four ranks has a part, the least size is 16 bytes for each.
    assert [one["bytes"] for one in measured] == [1 << i for i in range(3 if name in WHOLE else 6, 21)]
    for one in measured:
        assert (one["collective"], one["ranks"], one["nodes"], one["wrong"]) == (name, 4, 2, 0)
        assert one["count"] * 4 * (1 if name in WHOLE else 4) == one["bytes"]
        assert one["root"] == (3 if name in ROOTED else None)
        assert one["reduction"] == ("sum" if name in REDUCING else None)
        assert one["algbw_gigabytes_per_second"] == one["bytes"] / 1e9 / one["mean_seconds"]
        assert one["busbw_gigabytes_per_second"] == one["algbw_gigabytes_per_second"] * FACTORS[name]


@pytest.mark.parametrize("op", ["sum", "avg", "min", "max", "prod"])
def test_every_reduction_of_every_type(op):
    for name in ("float", "double", "half", "bfloat16", "int32", "int64", "uint8"):
        for one in measured_by(3, 1, "reduce_scatter", "-b", "48", "-e", "100K", "-f", "40", "-d", name, "-o", op):
            assert one["wrong"] == 0, one


def test_parts_are_rounded_as_nccl_tests_rounds_them():
    """Three ranks share 1 MiB: 87380 floats for each, since 87381 are no multiple of 16 bytes."""
    [one] = measured_by(3, 1, "all_gather", "-b", "1M", "-e", "1M")
    assert (one["bytes"], one["count"]) == (1_048_560, 87_380)


def test_a_large_input_of_an_all_to_all_has_its_table_beside_it():
    sizes_of_it = [one["bytes"] for one in measured_by(2, 1, "all_to_all", "-b", "25M", "-e", "100M", "-f", "2")]
    assert sizes_of_it == [25 << 20, 50 << 20, 100 << 20]


def test_the_table_has_the_columns_of_nccl_tests():
    lines = bench(2, 1, "broadcast", "-b", "8", "-e", "2K", "-f", "16", "-d", "half", "-r", "1", "-n", "2", "-w", "1")
    head = [line.split() for line in lines if line.startswith("#")]
    assert "# Collective test starting: broadcast" in lines
    assert ["#", "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong"] in head
    assert ["#", "(B)", "(elements)", "(us)", "(GB/s)", "(GB/s)"] in head
    rows = [line.split() for line in lines if not line.startswith("#")]
    assert [row[:5] for row in rows] == [
        ["8", "4", "half", "none", "1"], ["128", "64", "half", "none", "1"], ["2048", "1024", "half", "none", "1"]
    ]  # fmt: skip
    assert all(float(row[5]) > 0 and row[6] == row[7] and row[8] == "0" for row in rows)
    assert "# Out of bounds values : 0 OK" in lines
    [average] = [line for line in lines if line.startswith("# Avg bus bandwidth    : ")]
    assert float(average.rpartition(" ")[2]) > 0


def test_counts_are_of_an_operation():
    """Two nodes: the network takes the input of each once, the daemon adds once, and nobody can do it without calls."""
    arguments = ["all_reduce", *sizes(1000, 10**6), "--iters", "50", "--counts"]
    for one in map(json.loads, bench(2, 1, *arguments, "--json")):
        counts = one["counts"]
        assert counts["operations"] == 50
        daemon, trainer = counts["daemon"], counts["trainer"]
        assert daemon["wake_ups"] > 0 and trainer["wake_ups"] >= 0
        for direction in ("sent", "received"):
            # A node may have begun the first operation before, and the last one behind, what was counted.
            assert 0.98 * one["bytes"] <= daemon[f"bytes_{direction}"] < 1.5 * one["bytes"] + 500
        known = [daemon["system_calls"], trainer["system_calls"]]
        assert all(calls is None for calls in known) if counts["why_not"] else all(calls > 0 for calls in known)
    lines = bench(2, 1, *arguments)
    assert len([line for line in lines if line.startswith("# each of 50 in a row")]) == 2
    assert len([line for line in lines if line.startswith("# braidd, of a node")]) == 2


def test_without_a_check_nothing_is_said_to_be_right():
    lines = bench(1, 2, "all_reduce", "-b", "8", "-e", "8", "-c", "0")
    assert [line.split()[8] for line in lines if not line.startswith("#")] == ["N/A"]
    assert [one["wrong"] for one in map(json.loads, bench(1, 2, "all_reduce", "-c", "0", "--json"))] == [None]


@needs_plain_build
@pytest.mark.parametrize(("name", "spoiled", "wrong"), [("all_reduce", 4096, 2), ("all_gather", 2048, 4)])
def test_a_spoiled_result_is_found(name, spoiled, wrong):
    """All results of one size; of an all-gather all blocks. Each of the two ranks has one wrong element in each."""
    done = ran(
        [
            CLUSTER, "--nodes", "2", "--daemon", BRAIDD, "--timeout", str(PATIENCE_S), "--",
            "env", f"LD_PRELOAD={BUILD}/lib/libspoiled_results.so", f"SPOILED_BYTES={spoiled}",
            BENCH, name, "-b", "1K", "-e", "8K", "-f", "2",
        ],
        timeout=PATIENCE_S + 30,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    rows = [line.removeprefix("[0] ").split() for line in done.stdout.splitlines() if "#" not in line]
    assert {row[0]: row[8] for row in rows} == {"1024": "0", "2048": "0", "4096": str(wrong), "8192": "0"}
    assert "# Out of bounds values : 1 FAILED" in done.stdout
    assert f"rank 1: wrong result: {name} of 4096 bytes: element " in done.stderr
    assert "1 of 4 sizes had wrong results" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("all_reduce -b 1M -e 1K", "--maxbytes is 1024 and --minbytes 1048576"),
        ("all_reduce -e 1G -b 8 -i 8", "more than 10000 sizes"),
        ("all_reduce -f 1", "--stepfactor"),
        ("all_reduce -i 8 -f 2", "--stepbytes excludes --stepfactor"),
        ("all_reduce -b 8 --sizes 8", "--minbytes excludes --sizes"),
        ("all_reduce -b 1Q", "'1Q' is no size"),
        ("all_reduce -d int8", "'int8' is none of float, double"),
        ("all_reduce -o mean", "'mean' is none of sum, avg"),
        ("all_reduce -r 0", "there is no option '-r' here"),
        ("broadcast -o sum", "there is no option '-o' here"),
        ("broadcast -r 2", "there is no rank 2; right is 0 to 1"),
        ("scatter --sizes 12", "12 is no multiple of the 8 bytes of one float32 for each of 2 ranks; use 16"),
        ("all_gather -b 8 -e 31", "31 bytes are too few for 2 ranks; use -e 32 or more"),
        ("barrier", "there is no command 'barrier' here"),
    ],
)
def test_wrong_arguments_are_named_before_anybody_is_asked(arguments, said):
    world = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "192.0.2.1", "BRAID_SOCKET": "/nowhere"}
    done = ran([BENCH, *arguments.split()], env={**os.environ, **world})
    assert (done.returncode, done.stdout) == (2, "") and said in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 and "--help says more" in done.stderr


def test_a_rank_that_does_not_come_is_waited_for_as_long_as_was_said():
    done = ran(
        [
            CLUSTER, "--nodes", "1", "--daemon", BRAIDD, "--timeout", str(PATIENCE_S),
            "--", "env", "WORLD_SIZE=2", BENCH, "all_reduce", "--timeout", "1",
        ],
        timeout=PATIENCE_S + 30,
    )  # fmt: skip
    assert done.returncode == 1 and "rank 1" in done.stderr + done.stdout, done.stdout + done.stderr


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
    measured = measured_by(3, 1, "all_reduce", *sizes(4, 65_540, 3_000_004), settings=settings)
    assert [(one["bytes"], one["wrong"]) for one in measured] == [(4, 0), (65_540, 0), (3_000_004, 0)]


DRIVER = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "lib" / "fake_cuda")}


@needs_plain_build
def test_a_gpus_memory_is_measured_beside_the_cpus():
    done = ran(
        [
            CLUSTER, "--nodes", "2", "--daemon", BRAIDD, "--timeout", str(PATIENCE_S),
            "--", BENCH, "device", "--sizes", "4,400kB,20MB", "--iters", "2", "--json",
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


@needs_plain_build
def test_a_machine_without_a_gpu_is_told():
    without = {**DRIVER, "FAKE_CUDA_DEVICES": "0"}
    done = ran([BENCH, "device", "--sizes", "4", "--socket", "/nowhere"], timeout=PATIENCE_S, env=without)
    assert done.returncode == 1 and "there is no GPU that can be used" in done.stderr
