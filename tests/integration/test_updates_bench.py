# SPDX-License-Identifier: Apache-2.0
"""bench/updates on a real cluster of two nodes."""

import json
import subprocess

import pytest
from braid_build import BUILD, IS_SANITIZED, PATIENCE_S
from compare_tool import UPDATES
from compare_lib.errors import CompareError
from real_cluster import needs_daemons
from updates_lib import options, requirements

pytestmark = [
    needs_daemons,
    pytest.mark.skipif(IS_SANITIZED, reason="torch's processes do not load a sanitizer"),
]

ARGUMENTS = ["--nodes", "2", "--build", str(BUILD), "--timeout", str(2 * PATIENCE_S)]
# All that the model emulates: some small parameters, a large one.
TRACE = {"numel": [500, 300_000, 700], "tb": [0.001, 0.002, 0.001], "forward_seconds": 0.002}


def bench(tmp_path, command, *arguments, exit_code=0):
    """What it printed, and its report."""
    results = tmp_path / "results.json"
    line = [command, *ARGUMENTS, *arguments, "--json", str(results)]
    try:
        requirements.check(options.parse(line))
    except CompareError as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [UPDATES, *line],
        capture_output=True, text=True, timeout=6 * PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done.stdout, json.loads(results.read_text())


def test_all_kinds_train(tmp_path):
    wanted = "sync,sharded,acco,od-sgd,ssd-sgd:pull_every=2,cd-sgd:threshold=0.03,diloco:5,local-sgd:2"
    printed, report = bench(
        tmp_path, "accuracy", "--systems", wanted, "--dataset", "fashion-mnist", "--seeds", "1", "--steps", "20",
        "--warmup-steps", "10", "--hidden", "16", "--learning-rate", "0.02", "--evaluate-every", "10",
        "--margin", "100",
    )  # fmt: skip
    assert report["errors"] == {} and {"torch", "kernel", "cores"} <= set(report["versions"])
    rows = {row["system"]: row for row in report["rows"]}
    assert ",".join(rows) == wanted
    for row in rows.values():
        (seed,) = row["seeds"]
        assert row["outcome"] in ("trains", "diverged") and seed["ranks_agree"] and row["system"] in printed
        assert [one["steps"] for one in seed["evaluations"]] == [10, 20] and len(seed["losses"]) == 20
    # The same parameters, the same batches, and the same sums in the warm-up.
    sync = rows["sync"]["seeds"][0]["losses"]
    for name in ("sharded", "od-sgd", "ssd-sgd:pull_every=2", "cd-sgd:threshold=0.03"):
        assert rows[name]["seeds"][0]["losses"][:10] == pytest.approx(sync[:10], rel=1e-3)
    assert rows["sharded"]["seeds"][0]["losses"] == pytest.approx(sync, rel=1e-3)
    # Both halves of the first round are computed with the weights of the beginning.
    acco = rows["acco"]["seeds"][0]["losses"]
    assert acco[0] == pytest.approx(sync[0], rel=1e-3) and acco[1:] != pytest.approx(sync[1:], rel=1e-3)
    assert rows["od-sgd"]["seeds"][0]["losses"][-1] != pytest.approx(sync[-1], rel=1e-6)


def test_acco_ends_where_sync_does(tmp_path):
    printed, report = bench(
        tmp_path, "accuracy", "--systems", "sync,acco", "--seeds", "1", "--steps", "300", "--margin", "4",
    )  # fmt: skip
    assert report["errors"] == {}
    # One seed is some pictures of 360 better or worse; a method that fails loses tens of points.
    assert [row["outcome"] for row in report["rows"]] == ["trains", "trains"], printed
    assert all(seed["ranks_agree"] for row in report["rows"] for seed in row["seeds"])


def test_steps_send_what_the_formula_says(tmp_path):
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps(TRACE))
    wanted = (
        "sync,sharded:pull=bf16,acco,acco:pull=bf16,od-sgd,ssd-sgd:pull_every=2,"
        "cd-sgd:threshold=0.001,correction_every=2,diloco:4"
    )
    printed, report = bench(
        tmp_path, "steps", "--systems", wanted, "--trace", str(trace), "--communication", "1", "--rounds", "1",
        "--steps", "4",
    )  # fmt: skip
    assert report["errors"] == {} and report["communication_seconds"] > 0
    (part,) = report["parts"]
    assert ",".join(row["system"] for row in part["rows"]) == wanted
    for row in part["rows"]:
        assert row["step_seconds"] > 0 and row["parameters"] == sum(TRACE["numel"]) and row["system"] in printed
        # Not less; barriers and chunks that go twice, as they do on a busy machine, are more.
        assert 0.99 < row["to_formula"] < 1.2, row["system"]
    assert part["compute_seconds"] == report["communication_seconds"]


def test_what_a_script_could_not_do_is_told_before_anything_starts(tmp_path):
    results = tmp_path / "results.json"
    done = subprocess.run(
        [UPDATES, "accuracy", *ARGUMENTS, "--systems", "sync,ssd-sgd:pull_every=20", "--json", str(results)],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "pull_every=20 and momentum 0.9 trains worse" in done.stderr
    assert done.stdout == "" and not results.exists()


def test_a_timeline_is_drawn_of_each_system(tmp_path, monkeypatch):
    monkeypatch.setenv("BRAID_SMALLEST_TENSOR", "0")  # each gradient is handed over by itself, in all systems
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps(TRACE))
    wanted = ["sync", "sharded", "sharded:overlap_backward,overlap_forward"]
    printed, report = bench(
        tmp_path, "timeline", "--systems", ",".join(wanted), "--trace", str(trace), "--steps", "2",
    )  # fmt: skip
    assert report["errors"] == {} and [part["system"] for part in report["parts"]] == wanted
    gradients = len(TRACE["numel"])
    for part in report["parts"]:
        first, second = part["computing"]
        assert [name for name, _, _ in first] == ["forward", "backward", "step()"]
        begin, second_backward, end = first[0][1], second[1][1], second[-1][2]
        # One clock: what a step has given to the daemon is noted before its results are there.
        assert len(within(part, begin, second_backward)) >= gradients, part["system"]
        if "overlap" not in part["system"]:
            assert len(within(part, begin, end)) == 2 * gradients, part["system"]
    for _, (_, begin, end), _ in report["parts"][1]["computing"]:
        assert not within(report["parts"][1], begin, end), "sharded hands gradients over in step()"
    timeline = pytest.importorskip("braid.plot.benchmarks", reason="matplotlib is not installed").timeline
    timeline(report, "").save(tmp_path / "timeline.svg")
    drawn = (tmp_path / "timeline.svg").read_text()
    assert all(system in drawn for system in wanted) and "gradients handed" in drawn


def within(part, begin, end):
    return [moment for moment in part["gradients"] if begin < moment < end]
