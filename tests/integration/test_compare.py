# SPDX-License-Identifier: Apache-2.0
"""bench/compare on a real cluster: braid and gloo, in turns."""

import json
import shutil
import subprocess
import xml.etree.ElementTree

import pytest
from braid_build import BUILD, PATIENCE_S
from compare_tool import COMPARE
from compare_lib import options, requirements
from compare_lib.errors import CompareError
from real_cluster import needs_daemons

pytestmark = needs_daemons

ARGUMENTS = [
    "--nodes", "2", "--nic-mbit", "2000", "--sizes", "1000,1000000", "--systems", "braid,gloo",
    "--repeats", "1", "--iterations", "200", "--warmup", "1", "--build", str(BUILD),
]  # fmt: skip


def test_two_systems_on_one_cluster(tmp_path):
    arguments = list(ARGUMENTS)
    if shutil.which("iperf3") is None:
        arguments.append("--no-wire")
    try:
        requirements.check(options.parse(arguments))
    except CompareError as error:
        pytest.skip(str(error))
    results, page = tmp_path / "results.json", tmp_path / "page.html"
    done = subprocess.run(
        [COMPARE, *arguments, "--json", str(results), "--html", str(page)],
        capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(results.read_text())
    assert report["errors"] == {} and report["nic_mbit"] == 2000
    assert {"braid", "UCX", "torch", "kernel", "cores"} <= set(report["versions"])
    assert [(row["bytes"], row["system"]) for row in report["rows"]] == [
        (1000, "braid"), (1000, "gloo"), (1_000_000, "braid"), (1_000_000, "gloo"),
    ]  # fmt: skip
    for row in report["rows"]:
        assert len(row["repeats"]) == 1
        assert 0 < row["median_seconds"] <= row["p99_seconds"]
        assert row["bus_gbit_per_second"] > 0 and row["nic_fraction"] > 0
        assert row["cpu_seconds_per_gigabyte"] > 0
        if row["bytes"] == 1_000_000:  # 0.8 s at least, at the NIC's speed: long enough to tell
            # What processes are charged for is a part of it; the clocks are read one after the other.
            assert row["machine_seconds_per_gigabyte"] > 0.9 * row["cpu_seconds_per_gigabyte"]
        assert (row["line_fraction"] is None) == ("--no-wire" in arguments)
    assert [one["best_peer"] for one in report["comparisons"]] == ["gloo", "gloo"]
    assert "1 MB: braid ÷ gloo" in done.stdout
    xml.etree.ElementTree.parse(page)
