# SPDX-License-Identifier: Apache-2.0
"""braidctl fit, plan and simulate as users call them: what they print, and what they say about mistakes."""

import json
import os
import subprocess

import pytest
from braid_build import BRAIDCTL, REPOSITORY, ran

pytestmark = pytest.mark.skipif(not os.path.exists(BRAIDCTL), reason="braidctl is not built")

COUNTEREXAMPLE = str(REPOSITORY / "docs" / "planning" / "counterexample.json")
GOOGLENET = str(REPOSITORY / "traces" / "googlenet_k80_b64.json")
PLAN = ["plan", "--trace", COUNTEREXAMPLE, "--planner", "exact", "--startup", "4", "--per-byte", "1"]
RING = [
    "simulate", "--trace", GOOGLENET, "--algorithm", "ring", "--alpha", "45.25e-6",
    "--beta", "9.934107462565104e-10", "--gamma", "2.5e-9",
]  # fmt: skip


def run(*arguments: str) -> subprocess.CompletedProcess:
    return ran([BRAIDCTL, *arguments])


def output(*arguments: str) -> str:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def replaced(arguments: list[str], option: str, value: str) -> list[str]:
    place = arguments.index(option) + 1
    return [*arguments[:place], value, *arguments[place + 1 :]]


@pytest.mark.parametrize(
    ("planner", "seconds", "groups"),
    [("mgwfbp", 18, [["third", "second"], ["first"]]), ("exact", 15, [["third"], ["second", "first"]])],
)
def test_the_counterexample(planner, seconds, groups):
    plan = json.loads(output(*replaced(PLAN, "--planner", planner), "--format", "json"))
    assert list(plan)[:5] == ["planner", "groups", "iteration_seconds", "backward_seconds", "exposed_seconds"]
    assert plan["planner"] == planner
    assert plan["groups"] == groups
    assert (plan["iteration_seconds"], plan["backward_seconds"], plan["exposed_seconds"]) == (seconds, 8, seconds - 8)


def test_a_fit_is_a_cost(tmp_path):
    log = tmp_path / "bench.log"
    lines = [{"bytes": 1 << i, "median_seconds": 1e-4 + 1e-9 * (1 << i), "ranks": 4} for i in range(10, 24)]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "14 measurements with 4 ranks" in output("fit", str(log))
    cost = tmp_path / "cost.json"
    cost.write_text(output("fit", str(log), "--json"))
    band = json.loads(cost.read_text())["bands"][0]
    assert band["startup_seconds"] == pytest.approx(1e-4, rel=1e-6)
    assert band["seconds_per_byte"] == pytest.approx(1e-9, rel=1e-6)
    plan = ["plan", "--planner", "exact", "--cost", str(cost), "--format", "json"]
    assert json.loads(output(*plan, "--trace", GOOGLENET))["groups"]
    outside = run(*plan, "--trace", COUNTEREXAMPLE)
    assert outside.returncode == 0
    assert "lie outside the sizes" in outside.stderr
    assert "lie outside the sizes" in json.loads(outside.stdout)["warnings"][0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "a command is required: status, advise, check, explain, fit, "),
        (["bogus"], "bogus"),
        (["plan"], "--trace"),
        (PLAN[:5], "--startup and --per-byte, or --cost"),
        (replaced(PLAN, "--planner", "best"), "--planner: no planner is named 'best'; there are wfbp,"),
        (replaced(PLAN, "--startup", "-1"), "--startup: '-1' does not fit; right is a number from 0"),
        ([*PLAN, "--cost", "c.json"], "--startup excludes --cost"),
        ([*PLAN, "--streams", "0"], "--streams: '0' does not fit; right is an integer from 1 to 64"),
        (RING, "--workers"),
        ([*RING, "--workers", "8,4"], "--workers: '4' does not grow; right is a list such as 4,8,16"),
        ([*RING, "--workers", "4", "--planners", "wfbp,best"], "--planners: no planner is named 'best'"),
        ([*RING, "--workers", "4", "--update", "sync,sgd"], "'sgd': no method has this name; right are sync, "),
        ([*RING, "--workers", "4", "--jitter", "1"], "--jitter: '1' does not fit; right is a number from 0 to 0.999"),
        (
            [*replaced(RING, "--algorithm", "star"), "--workers", "4"],
            "--algorithm: unknown algorithm 'star'; known are ring",
        ),
        (
            [*replaced(RING, "--algorithm", "hierarchical"), "--workers", "12"],
            "--workers: 12 workers do not fill groups of 8",
        ),
        (["fit"], "logs, or --job, is required"),
        (["fit", "x.log", "--from", "2kB", "--to", "1kB"], "--from: 2000 is more than --to, 1000"),
        (["fit", "x.log", "--from", "much"], "--from: 'much' is no size; right is such as 65536, 64KiB or 1MB"),
    ],
)  # fmt: skip
def test_mistakes_on_the_command_line_end_with_2(arguments, said):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        ('{"names": ["a"], "numel": [1], "tb": [NaN]}', "no NaN"),
        ('{"names": ["a"], "numel": [1], "tb": [1], "numel": [2]}', '"numel" stands twice'),
    ],
)
def test_bad_traces_end_with_1(tmp_path, content, said):
    path = tmp_path / "trace.json"
    if content is not None:
        path.write_text(content)
    for arguments in (replaced(PLAN, "--trace", str(path)), [*replaced(RING, "--trace", str(path)), "--workers", "4"]):
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"braidctl: {path}: ")
        assert said in done.stderr


def test_bad_logs_and_costs_end_with_1(tmp_path):
    path = tmp_path / "x"
    path.write_text("4 1\nnonsense\n")
    done = run("fit", str(path))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{path}:2: 'nonsense' is no measurement" in done.stderr
    path.write_text('{"bands": []}')
    done = run("plan", "--trace", COUNTEREXAMPLE, "--planner", "exact", "--cost", str(path))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{path}: bands: 0 of them" in done.stderr


def test_a_full_disk_is_no_success():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([BRAIDCTL, *PLAN], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "No space left" in done.stderr
