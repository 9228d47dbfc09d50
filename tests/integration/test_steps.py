# SPDX-License-Identifier: Apache-2.0
"""bench/steps on a real cluster of two nodes."""

import json

import pytest
from bench_tools import STEPS
from braid_build import BUILD, IS_SANITIZED, PATIENCE_S, ran
from measure.training import steps
from real_cluster import needs_daemons

pytestmark = [
    needs_daemons,
    pytest.mark.skipif(IS_SANITIZED, reason="torch's processes do not load a sanitizer"),
]

# All that the model emulates: some small parameters, a large one.
TRACE = {"numel": [500, 300_000, 700], "tb": [0.001, 0.002, 0.001], "forward_seconds": 0.002}


def bench(tmp_path, *arguments):
    """What it printed, and its report."""
    results, trace = tmp_path / "results.json", tmp_path / "trace.json"
    trace.write_text(json.dumps(TRACE))
    line = ["--nodes", "2", "--build", str(BUILD), "--timeout", str(2 * PATIENCE_S), "--trace", str(trace)]
    line += ["--communication", "1", "--rounds", "1", *arguments]
    line += ["--json", str(results)]
    if missing := steps.Steps(steps.parse(line)).missing():
        pytest.skip("; ".join(missing))
    done = ran([STEPS, *line], timeout=6 * PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, json.loads(results.read_text())


def test_steps_send_what_the_formula_says(tmp_path):
    wanted = (
        "braid,sharded:pull=bf16,acco,acco:pull=bf16,od-sgd,ssd-sgd:pull_every=2,"
        "cd-sgd:threshold=0.001,correction_every=2,diloco:4"
    )
    printed, report = bench(tmp_path, "--systems", wanted, "--steps", "4")
    assert report["errors"] == {} and report["communication_seconds"] > 0
    assert ",".join(row["system"] for row in report["rows"]) == wanted
    for row in report["rows"]:
        assert row["step_seconds"] > 0 and row["parameters"] == sum(TRACE["numel"]) and row["system"] in printed
        assert row["compute_seconds"] == report["communication_seconds"]
        # Not less; barriers and chunks that go twice, as they do on a busy machine, are more.
        assert 0.99 < row["to_formula"] < 1.2, row["system"]


def test_the_steps_of_each_system_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setenv("BRAID_SMALLEST_TENSOR", "0")  # each gradient is handed over by itself, in all systems
    wanted = ["braid", "sharded", "sharded:overlap_backward,overlap_forward"]
    _, report = bench(tmp_path, "--systems", ",".join(wanted), "--steps", "2", "--timeline")
    assert report["errors"] == {} and list(report["timelines"]) == wanted
    gradients = len(TRACE["numel"])
    for system, part in report["timelines"].items():
        first, second = part["computing"]
        assert [name for name, _, _ in first] == ["forward", "backward", "step()"]
        begin, second_backward, end = first[0][1], second[1][1], second[-1][2]
        # One clock: what a step has given to the daemon is noted before its results are there.
        assert len(within(part, begin, second_backward)) >= gradients, system
        if "overlap" not in system:
            assert len(within(part, begin, end)) == 2 * gradients, system
    sharded = report["timelines"]["sharded"]
    for _, (_, begin, end), _ in sharded["computing"]:
        assert not within(sharded, begin, end), "sharded hands gradients over in step()"
    timeline = pytest.importorskip("braid.plot.benchmarks", reason="matplotlib is not installed").timeline
    timeline(report, "").save(tmp_path / "timeline.svg")
    drawn = (tmp_path / "timeline.svg").read_text()
    assert all(system in drawn for system in wanted) and "gradients handed" in drawn


def within(part, begin, end):
    return [moment for moment in part["gradients"] if begin < moment < end]
