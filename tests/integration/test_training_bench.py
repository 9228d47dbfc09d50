# SPDX-License-Identifier: Apache-2.0
"""bench/train on a real cluster of two nodes."""

import json
import subprocess

import pytest
from braid_build import BUILD, IS_SANITIZED, PATIENCE_S
from compare_tool import TRAIN
from compare_lib.errors import CompareError
from real_cluster import needs_daemons
from training_lib import options, requirements

pytestmark = [
    needs_daemons,
    pytest.mark.skipif(IS_SANITIZED, reason="torch's processes do not load a sanitizer"),
]

SEEDS, STEPS = 2, 40
ARGUMENTS = ["--nodes", "2", "--dataset", "fashion-mnist", "--hidden", "64", "--build", str(BUILD)]


def train(tmp_path, *arguments, exit_code=0):
    """What it printed, what it complained of, and its rows by system."""
    results = tmp_path / "results.json"
    try:
        requirements.check(options.parse([*ARGUMENTS, *arguments]))
    except CompareError as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [TRAIN, *ARGUMENTS, *arguments, "--timeout", str(2 * PATIENCE_S), "--json", str(results)],
        capture_output=True, text=True, timeout=6 * PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done.stdout, json.loads(results.read_text())


def test_four_systems_train_alike(tmp_path):
    printed, report = train(
        tmp_path, "--systems", "braid,braid:bf16,gloo,gloo:fp16", "--seeds", str(SEEDS), "--steps", str(STEPS),
        "--learning-rate", "0.02", "--target", "15", "--evaluate-every", "20", "--margin", "15",
    )  # fmt: skip
    assert report["errors"] == {} and {"torch", "kernel", "cores"} <= set(report["versions"])
    rows = {row["system"]: row for row in report["rows"]}
    assert list(rows) == ["braid", "braid:bf16", "gloo", "gloo:fp16"]
    for row in rows.values():
        expect_sane(row)
        assert row["accuracy"] == pytest.approx(rows["braid"]["accuracy"], abs=10)
        assert f"{row['accuracy']:.2f} ± {row['accuracy_deviation']:.2f}" in printed
    # The same parameters, the same batches: what differs is the order of additions, and what 16 bits lose.
    for seed in range(SEEDS):
        first = [row["seeds"][seed]["losses"][0] for row in rows.values()]
        assert first == pytest.approx([first[0]] * 4, rel=1e-5)
    assert rows["braid"]["seeds"][0]["losses"][0] != rows["braid"]["seeds"][1]["losses"][0]
    assert rows["braid"]["seeds"][0]["losses"][-1] != rows["braid:bf16"]["seeds"][0]["losses"][-1]
    for half, whole in (("braid:bf16", "braid"), ("gloo:fp16", "gloo")):
        assert 0.4 < rows[half]["bytes_per_step"] / rows[whole]["bytes_per_step"] < 0.7


def expect_sane(row):
    assert row["outcome"] == "trains" and row["accuracy_deviation"] > 0 and row["loss_deviation"] > 0
    assert 20 < row["accuracy"] <= 100 and 0 < row["loss"] < 2.2
    assert row["step_seconds"] > 0 and row["target_reached"] == SEEDS and row["target_seconds"] > 0
    for number, seed in enumerate(row["seeds"], 1):
        assert seed["seed"] == number and seed["ranks_agree"]
        assert len(seed["losses"]) == len(seed["step_seconds"]) == STEPS
        assert len(seed["bytes_per_step"]) == len(seed["communication_seconds"]) == STEPS // 5
        assert [one["steps"] for one in seed["evaluations"]] == [20, STEPS]


def test_a_system_that_fails_stays_in_the_table_and_the_others_go_on(tmp_path):
    # torch's batched PowerSGD gives a function of its own a matrix that it does not take.
    printed, report = train(
        tmp_path, "--systems", "gloo:batched-powersgd,gloo,braid:sign-vote@learning-rate=1000", "--seeds", "1",
        "--steps", "10", exit_code=1,
    )  # fmt: skip
    assert list(report["errors"]) == ["gloo:batched-powersgd"]
    assert "AssertionError" in report["errors"]["gloo:batched-powersgd"]
    failed, plain, wild = report["rows"]
    assert failed["outcome"] == "failed" and failed["seeds"] == [] and failed["accuracy"] is None
    assert plain["outcome"] == "trains" and wild["outcome"] in ("worse", "diverged")
    assert "gloo:batched-powersgd FAILED: a worker closed its connection" in printed


def test_what_braid_refuses_is_told_before_anything_starts(tmp_path):
    results = tmp_path / "results.json"
    done = subprocess.run(
        [TRAIN, *ARGUMENTS, "--systems", "braid,braid:int9", "--json", str(results)],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "braid:int9: braid-bench: no codec is named 'int9'" in done.stderr
    assert done.stdout == "" and not results.exists()
