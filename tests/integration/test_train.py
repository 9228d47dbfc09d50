# SPDX-License-Identifier: Apache-2.0
"""bench/train on a real cluster of two nodes."""

import json

import pytest
from bench_tools import TRAIN
from braid_build import BUILD, IS_SANITIZED, PATIENCE_S, ran
from measure.training import train as bench
from real_cluster import needs_daemons

pytestmark = [
    needs_daemons,
    pytest.mark.skipif(IS_SANITIZED, reason="torch's processes do not load a sanitizer"),
]

SEEDS, STEPS = 2, 40
PICTURES = ["--dataset", "fashion-mnist", "--hidden", "32", "--learning-rate", "0.02"]


def train(tmp_path, *arguments, exit_code=0):
    """What it printed, and its report."""
    results = tmp_path / "results.json"
    line = ["--nodes", "2", "--build", str(BUILD), "--timeout", str(2 * PATIENCE_S), *arguments]
    if missing := bench.Trainings(bench.parse(line)).missing():
        pytest.skip("; ".join(missing))
    done = ran([TRAIN, *line, "--json", str(results)], timeout=6 * PATIENCE_S)
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done.stdout, json.loads(results.read_text())


def test_codecs_and_hooks_train_alike(tmp_path):
    printed, report = train(
        tmp_path, "--systems", "braid,braid:bf16,gloo,gloo:fp16", "--seeds", str(SEEDS), "--steps", str(STEPS),
        "--target", "15", "--margin", "15", *PICTURES,
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
    assert 15 <= row["accuracy"] <= 100 and 0 < row["loss"] < 2.3
    assert row["step_seconds"] > 0 and row["target_reached"] == SEEDS and row["target_seconds"] > 0
    for number, seed in enumerate(row["seeds"], 1):
        assert seed["seed"] == number and seed["ranks_agree"]
        assert len(seed["losses"]) == len(seed["step_seconds"]) == STEPS
        assert len(seed["bytes_per_step"]) == len(seed["communication_seconds"]) == STEPS // 5
        assert [one["steps"] for one in seed["evaluations"]] == [20, STEPS]


def test_all_ways_to_update_train(tmp_path):
    wanted = "braid,sharded,acco,od-sgd,ssd-sgd:pull_every=2,cd-sgd:threshold=0.03,diloco:5,local-sgd:2"
    printed, report = train(
        tmp_path, "--systems", wanted, "--seeds", "1", "--steps", "20", "--warmup-steps", "10",
        "--evaluate-every", "10", "--margin", "100", *PICTURES,
    )  # fmt: skip
    assert report["errors"] == {}
    rows = {row["system"]: row for row in report["rows"]}
    assert ",".join(rows) == wanted
    for row in rows.values():
        (seed,) = row["seeds"]
        assert row["outcome"] in ("trains", "diverged") and seed["ranks_agree"] and row["system"] in printed
        assert [one["steps"] for one in seed["evaluations"]] == [10, 20] and len(seed["losses"]) == 20
    # The same parameters, the same batches, and the same sums in the warm-up.
    plain = rows["braid"]["seeds"][0]["losses"]
    for name in ("sharded", "od-sgd", "ssd-sgd:pull_every=2", "cd-sgd:threshold=0.03"):
        assert rows[name]["seeds"][0]["losses"][:10] == pytest.approx(plain[:10], rel=1e-3)
    assert rows["sharded"]["seeds"][0]["losses"] == pytest.approx(plain, rel=1e-3)
    # Both halves of the first round are computed with the weights of the beginning.
    acco = rows["acco"]["seeds"][0]["losses"]
    assert acco[0] == pytest.approx(plain[0], rel=1e-3) and acco[1:] != pytest.approx(plain[1:], rel=1e-3)
    assert rows["od-sgd"]["seeds"][0]["losses"][-1] != pytest.approx(plain[-1], rel=1e-6)


def test_other_optimizers_train_on_the_same_batches(tmp_path):
    wanted = "braid,adamw@learning-rate=0.002,kfac:mode=spd,inv_update_steps=5,damping=0.1,muon:adamw=0.002"
    _, report = train(
        tmp_path, "--systems", wanted, "--seeds", "1", "--steps", "20", "--evaluate-every", "10", "--margin", "100",
        *PICTURES,
    )  # fmt: skip
    assert report["errors"] == {}
    rows = {row["system"]: row["seeds"][0] for row in report["rows"]}
    assert ",".join(rows) == wanted
    first = rows["braid"]["losses"]
    for system, seed in rows.items():
        assert seed["ranks_agree"] and len(seed["losses"]) == 20
        # The same parameters, and each optimizer's own way from there.
        assert seed["losses"][0] == pytest.approx(first[0], rel=1e-5)
        assert (seed["losses"][1] == pytest.approx(first[1], rel=1e-5)) == (system == "braid")


def test_a_system_that_fails_stays_in_the_table_and_the_others_go_on(tmp_path):
    # torch's batched PowerSGD gives a function of its own a matrix that it does not take.
    printed, report = train(
        tmp_path, "--systems", "gloo:batched-powersgd,gloo,braid:sign-vote@learning-rate=1000", "--seeds", "1",
        "--steps", "10", *PICTURES, exit_code=1,
    )  # fmt: skip
    assert list(report["errors"]) == ["gloo:batched-powersgd"]
    assert "AssertionError" in report["errors"]["gloo:batched-powersgd"]
    failed, plain, wild = report["rows"]
    assert failed["outcome"] == "failed" and failed["seeds"] == [] and failed["accuracy"] is None
    assert plain["outcome"] == "trains" and wild["outcome"] in ("worse", "diverged")
    assert "gloo:batched-powersgd FAILED:" in printed


def test_what_braid_refuses_is_told_before_anything_starts(tmp_path):
    results = tmp_path / "results.json"
    done = ran([TRAIN, "--build", str(BUILD), "--systems", "braid,braid:int9", "--json", str(results), *PICTURES])
    assert done.returncode == 2 and "braid:int9: braid-bench: no codec is named 'int9'" in done.stderr
    assert done.stdout == "" and not results.exists()
