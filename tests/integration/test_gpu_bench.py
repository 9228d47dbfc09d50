# SPDX-License-Identifier: Apache-2.0
"""bench/gpu/measure without a GPU: its bundle, in another place and with an empty environment, rehearses."""

import json
import os
import pathlib
import sys

import pytest
from bench_tools import GPU
from braid_build import BUILD, IS_SANITIZED, PATIENCE_S, ran
from measure import needs
from measure.gpu import bundle, plan
from measure.paths import installation_of
from real_cluster import needs_daemons

pytestmark = [
    needs_daemons,
    pytest.mark.skipif(IS_SANITIZED, reason="a bundle is of a release build"),
]

# Where a usual machine has its programs, and the interpreter that has torch.
BARE = {"PATH": os.pathsep.join([str(pathlib.Path(sys.executable).parent), "/usr/bin", "/bin"])}


@pytest.fixture(scope="module")
def moved(tmp_path_factory) -> pathlib.Path:
    """A bundle, in another folder than it was made in."""
    braid = installation_of(".", str(BUILD))
    if missing := bundle.missing(braid):
        pytest.skip("; ".join(missing))
    folder = tmp_path_factory.mktemp("bundles")
    done = ran([GPU, "bundle", folder / "made", "--build", str(BUILD)])
    assert done.returncode == 0, done.stderr
    assert "glibc 2." in done.stdout
    return (folder / "made").rename(folder / "moved")


def test_programs_of_a_bundle_need_no_environment(moved):
    for name, arguments in (("braidd", "--version"), ("braidctl", "--version"), ("braid-bench", "--version"),
                            ("braid-gpu-probe", "--help"), ("ip", "-V"), ("tc", "-V")):  # fmt: skip
        done = ran([moved / "build" / "release" / "bin" / name, arguments], env={})
        assert done.returncode == 0, f"{name}: {done.stderr}"


def test_a_bundle_is_made_anew_but_replaces_nothing_else(moved, tmp_path):
    again = ran([GPU, "bundle", moved, "--build", str(BUILD)])
    assert again.returncode == 0, again.stderr
    (tmp_path / "mine").write_text("precious")
    refused = ran([GPU, "bundle", tmp_path, "--build", str(BUILD)])
    assert refused.returncode == 1 and "no bundle" in refused.stderr
    assert (tmp_path / "mine").read_text() == "precious"


def test_without_a_driver_nothing_is_measured(moved, tmp_path):
    done = ran([moved / "measure", "--output", tmp_path / "results"], env=BARE)
    assert done.returncode == 2 and "libcuda.so.1" in done.stderr and "rehearse" in done.stderr
    assert done.stdout == ""


def test_a_rehearsal_has_figures_for_every_step(moved, tmp_path):
    if not needs.has_module(sys.executable, "torch"):
        pytest.skip("torch is not installed")
    command = [moved / "bench" / "gpu" / "measure", "rehearse", "--output", tmp_path]
    done = ran(command, env=BARE, timeout=4 * PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["errors"] == {} and report["has_namespaces"] and report["is_rehearsal"]
    assert "torch" in report["versions"] and report["machine"]["braid"]
    taken = {(one["network"], one["system"], one["test"]) for one in report["steps"] if one["outcome"] == "done"}
    wanted = {(one.network, one.system, one.test) for one in plan.REHEARSAL if one.system != plan.IPERF}
    assert wanted <= taken
    expect_sane(report["rows"])
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == report["rows"]
    table = (tmp_path / "report.md").read_text()
    assert "a rehearsal" in table and table.strip() in done.stdout
    assert ran([GPU, "table", tmp_path / "report.json"]).stdout.strip() == table.strip()


def expect_sane(rows: list[dict]) -> None:
    of_test = {}
    for row in rows:
        of_test.setdefault(row["test"], []).append(row)
    for row in of_test["collectives"]:
        assert (row["wrong"], row["refused"], row["named"]) == (0, 0, []) and row["done"] > 100
    for row in of_test["ddp"] + of_test["ddp-buckets"] + of_test["fsdp"]:
        assert 0 < row["backward_held_seconds"] < row["step_seconds"] and row["computing_seconds"] > 0
        assert row["wire_seconds"] > 0
    # Nothing is faster than the wire.
    for row in of_test["rates"]:
        assert row["median_seconds"] > 0 and row["cpu_seconds_per_gigabyte"] > 0
        if row["network"] == plan.CAPPED and row["bytes"] == plan.REHEARSED.largest:
            assert row["bus_gbit_per_second"] < 1.1 * plan.NIC_MBIT / 1e3
    assert [row["count"] for row in of_test["communicators"]] == [1, 2, 4, 8]
    for row in of_test["beside"]:
        assert row["products_alone_per_second"] > 0 and row["products_beside_per_second"] > 0
    # A processor has no copies.
    assert of_test["copies"][0]["to_host_copies"] == 0 and of_test["copies"][0]["to_host_gb_per_second"] is None
