# SPDX-License-Identifier: Apache-2.0
"""braidctl kfac as users call it: what it prints, and what it says about mistakes."""

import json
import os
import pathlib
import subprocess

import pytest
from braid_build import BRAIDCTL, REPOSITORY, ran

pytestmark = pytest.mark.skipif(not os.path.exists(BRAIDCTL), reason="braidctl is not built")

RESNET = REPOSITORY / "traces" / "resnet50_kfac.json"
LINK = ["--algorithm", "ring", "--alpha", "7.373e-6", "--beta", "1.8204e-10"]
FACTOR = {"dimension": 2, "compute": 0.001, "invert": 0.002}
LAYER = {"name": "fc", "forward": 0.001, "backward": 0.002, "gradient_bytes": 16, "a": FACTOR, "g": FACTOR}


def run(path: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess:
    return ran([BRAIDCTL, "kfac", "--step", str(path), *LINK, *arguments])


def test_methods_over_ranks_as_json():
    done = run(RESNET, "--ranks", "4,8,...,16", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    methods = ["d-kfac", "mpd-kfac", "pipeline", "balance", "spd-kfac", "spd-kfac:t", "braid"]
    assert [(row["ranks"], row["method"]) for row in rows] == [(n, m) for n in (4, 8, 16) for m in methods]
    for row in rows:
        times = [seconds for key, seconds in row.items() if key.endswith("_seconds") and key != "total_seconds"]
        assert len(times) == 6 and sum(times) == pytest.approx(row["total_seconds"])
        assert row["total_seconds"] >= next(
            each["total_seconds"] for each in rows if (each["ranks"], each["method"]) == (row["ranks"], "braid")
        )
        assert ("chosen" in row) == (row["method"] == "braid")
        assert row["groups"]["a"] >= 1 and row["groups"]["g"] >= 1 and row["groups"]["gradients"] >= 1


def test_chosen_methods_as_a_table():
    done = run(RESNET, "--ranks", "64", "--methods", "spd-kfac,braid")
    assert (done.returncode, done.stderr) == (0, "")
    assert "resnet50: 107 layers, 108 factors; all-reduces by ring" in done.stdout
    assert [line.split()[:2] for line in done.stdout.splitlines() if line.startswith("64")] == [
        ["64", "spd-kfac"],
        ["64", "braid"],
    ]
    assert "braid on 64 ranks: planned jointly" in done.stdout


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"layers": []}, "layers: a list of 0 has no factors"),
        ({"layers": [{**LAYER, "forward": -1}]}, "layers[0].forward: -1 is negative"),
        ({"layers": [{**LAYER, "a": {**FACTOR, "dimension": 0}}]}, "layers[0].a.dimension: 0"),
        ({"layers": [LAYER, LAYER]}, 'layers[1].name: "fc" stands twice'),
        ({"layers": [{**LAYER, "cost": 1}]}, 'layers[0]."cost" is not known'),
    ],
)
def test_mistakes_in_the_file_are_named(tmp_path, step, said):
    path = tmp_path / "step.json"
    path.write_text(json.dumps(step))
    done = run(path, "--ranks", "4")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{path}: " in done.stderr and said in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ranks", "0"], "--ranks: '0' is no number of workers; right is a list such as 4,8,16"),
        (["--ranks", "4", "--methods", "kaisa"], "no method is called 'kaisa'; right are d-kfac, mpd-kfac"),
        (["--ranks", "4", "--alpha", "-1"], "--alpha"),
        ([], "--ranks is required"),
    ],
)
def test_mistakes_on_the_command_line_end_with_2(arguments, said):
    done = run(RESNET, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_file_that_is_not_there_is_named(tmp_path):
    done = run(tmp_path / "none.json", "--ranks", "4")
    assert done.returncode == 1 and "none.json" in done.stderr
