# SPDX-License-Identifier: Apache-2.0
"""bench/compare on a real cluster: braid and gloo, in turns, also through torch."""

import json
import shutil

import pytest
from braid_build import BUILD, PATIENCE_S, ran
from bench_tools import COMPARE
from measure.compare import main, options
from real_cluster import needs_daemons

pytestmark = needs_daemons

ARGUMENTS = [
    "--nodes", "2", "--nic-mbit", "2000", "--sizes", "1000,1000000", "--systems", "braid,gloo",
    "--repeats", "1", "--iterations", "200", "--warmup", "1", "--build", str(BUILD),
]  # fmt: skip
THROUGH_TORCH = [
    "--through", "torch", "--nodes", "2", "--ranks-per-node", "2", "--nic-mbit", "2000", "--flow-mbit", "500",
    "--delay-ms", "0.1", "--sizes", "100000", "--repeats", "2", "--iterations", "3", "--warmup", "1", "--no-wire",
    "--build", str(BUILD),
]  # fmt: skip
COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "gather", "scatter"]


def skip_unless_it_can_run(arguments):
    if missing := main.Comparison(options.parse(arguments)).missing():
        pytest.skip("; ".join(missing))


def compare(tmp_path, arguments, exit_code=0):
    """What it printed, and its report."""
    results = tmp_path / "results.json"
    done = ran([COMPARE, *arguments, "--json", str(results)], timeout=2 * PATIENCE_S)
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done.stdout, json.loads(results.read_text())


def test_two_systems_on_one_cluster(tmp_path):
    arguments = list(ARGUMENTS)
    if shutil.which("iperf3") is None:
        arguments.append("--no-wire")
    skip_unless_it_can_run(arguments)
    printed, report = compare(tmp_path, arguments)
    assert report["errors"] == {} and report["options"]["nic_mbit"] == "2000"
    assert {"braid", "torch", "kernel", "cores"} <= set(report["versions"])
    assert [(row["bytes"], row["system"]) for row in report["rows"]] == [
        (1000, "braid"), (1000, "gloo"), (1_000_000, "braid"), (1_000_000, "gloo"),
    ]  # fmt: skip
    for row in report["rows"]:
        assert len(row["repeats"]) == 1
        assert 0 < row["median_seconds"] <= row["p99_seconds"]
        assert row["bus_gbit_per_second"] > 0 and row["nic_fraction"] > 0
        assert row["cpu_seconds_per_gigabyte"] > 0
        if row["bytes"] == 1_000_000:  # 0.8 s at least, at the NIC's speed: long enough to tell
            assert row["machine_seconds_per_gigabyte"] > 0
        assert (row["line_fraction"] is None) == ("--no-wire" in arguments)
    assert [one["best_peer"] for one in report["comparisons"]] == ["gloo", "gloo"]
    assert "1 MB: braid ÷ gloo" in printed


def test_gloo_with_its_interface_named_four_times(tmp_path):
    arguments = [
        "--nodes", "2", "--sizes", "1000", "--systems", "gloo,gloo-links4", "--repeats", "1", "--iterations", "5",
        "--no-wire", "--build", str(BUILD),
    ]  # fmt: skip
    skip_unless_it_can_run(arguments)
    _, report = compare(tmp_path, arguments)
    assert report["errors"] == {} and [row["system"] for row in report["rows"]] == ["gloo", "gloo-links4"]


def test_what_an_operation_of_braid_makes_processes_do(tmp_path):
    arguments = ["--nodes", "2", "--sizes", "1000", "--systems", "braid", "--repeats", "1", "--iterations", "5"]
    printed, report = compare(tmp_path, [*arguments, "--no-wire", "--counts", "--build", str(BUILD)])
    [one] = report["counts"]
    assert (one["system"], one["bytes"], one["operations"]) == ("braid", 1000, 5)
    assert one["daemon"]["wake_ups"] > 0 and one["daemon"]["bytes_sent"] >= 800
    assert "wake ups" in printed and "trainer" in printed


def test_every_collective_through_torch_over_both(tmp_path):
    skip_unless_it_can_run(THROUGH_TORCH)
    printed, report = compare(tmp_path, THROUGH_TORCH)
    assert report["errors"] == {} and report["options"]["through"] == "torch" and report["options"]["delay_ms"] == 0.1
    assert {"braid", "torch", "kernel", "cores"} <= set(report["versions"])
    assert [(row["collective"], row["dtype"], row["system"]) for row in report["rows"]] == [
        (collective, dtype, system)
        for collective in COLLECTIVES
        for dtype in ("float32", "bfloat16")
        for system in ("braid", "gloo")
    ]
    for row in report["rows"]:
        assert (row["bytes"], row["nodes"], row["ranks_per_node"], len(row["repeats"])) == (100_000, 2, 2, 2)
        assert 0 < row["median_seconds"] <= row["p99_seconds"]
        assert row["cpu_seconds_per_gigabyte"] > 0 and row["to_gloo"] > 0 and row["to_before"] is None
    lines = printed.splitlines()
    assert [line.split()[:3] for line in lines[2:]] == [
        [row["collective"], row["system"], row["dtype"]] for row in report["rows"]
    ]


def test_a_braid_that_does_not_start_through_torch_is_told_and_gloo_is_measured(tmp_path):
    # The folder has a braid package that does not work.
    package = tmp_path / "python" / "braid" / "torch"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("raise ImportError('this braid is broken')\n")
    (package / "__init__.py").touch()
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "release").symlink_to(BUILD)
    arguments = [
        "--through", "torch", "--nodes", "2", "--sizes", "1000", "--collectives", "gather", "--dtypes", "float32",
        "--systems", "gloo", "--repeats", "1", "--iterations", "1", "--warmup", "1", "--no-wire",
        "--build", str(BUILD), "--before", str(tmp_path),
    ]  # fmt: skip
    skip_unless_it_can_run(arguments)
    printed, report = compare(tmp_path, arguments, exit_code=1)
    assert list(report["errors"]) == ["braid-before"]
    assert "this braid is broken" in report["errors"]["braid-before"]
    assert [row["system"] for row in report["rows"]] == ["gloo"] and "braid-before FAILED:" in printed
