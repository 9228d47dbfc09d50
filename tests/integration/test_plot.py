# SPDX-License-Identifier: Apache-2.0
"""braid-plot draws what braidctl prints, and says what it cannot draw."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree

import pytest
from braid_build import BRAIDCTL, PATIENCE_S, REPOSITORY, ran

pytest.importorskip("matplotlib")

from braid.plot.panels import rows_of  # noqa: E402

needs_braidctl = pytest.mark.skipif(not os.path.exists(BRAIDCTL), reason="braidctl is not built")
GOOGLENET = str(REPOSITORY / "traces" / "googlenet_k80_b64.json")
COUNTEREXAMPLE = str(REPOSITORY / "docs" / "planning" / "counterexample.json")
PLAN = ["plan", "--trace", COUNTEREXAMPLE, "--planner", "mgwfbp", "--startup", "4", "--per-byte", "1"]
SIMULATE = ["simulate", "--trace", GOOGLENET, "--algorithm", "ring", "--alpha", "1e-5", "--beta", "1e-9",
            "--workers", "4,8,...,64"]  # fmt: skip


def texts(path) -> str:
    """All of a picture, a line each."""
    root = xml.etree.ElementTree.parse(path).getroot()
    return "\n".join("".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text"))


def plot(*arguments, text: str | None = None, python=(sys.executable,)) -> subprocess.CompletedProcess:
    return ran(
        [*python, "-m", "braid.plot.command", *map(str, arguments)],
        input=text, env={**os.environ, "PYTHONPATH": str(REPOSITORY / "python")},
    )  # fmt: skip


def drawn(tmp_path, *arguments: str, title: str = "") -> str:
    done = subprocess.run(
        [BRAIDCTL, *arguments, "--format", "json"], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    picture = tmp_path / "picture.svg"
    made = plot("-o", picture, *(["--title", title] if title else []), text=done.stdout)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    return texts(picture)


@needs_braidctl
def test_the_step_of_a_plan(tmp_path):
    said = drawn(tmp_path, *PLAN)
    assert "counterexample planned by mgwfbp: 18.0 s" in said
    assert "iteration 18.0 s = forward 0 s + backward 8.00 s" in said
    assert {"computation", "communication", "1", "2", "time since the step began (s)"} <= set(said.split("\n"))


@needs_braidctl
def test_planners_over_workers(tmp_path):
    said = drawn(tmp_path, *SIMULATE, "--planners", "wfbp,exact", title="GoogleNet on a ring")
    assert said.count("wfbp") == said.count("exact") == 2, "a legend for each panel"
    assert said.count("as many as workers") == 1
    assert "GoogleNet on a ring" in said and "iteration time (ms)" in said and "speed-up" in said and "64" in said


@needs_braidctl
def test_codecs_over_bandwidth(tmp_path):
    cost = tmp_path / "cost.json"
    band = {"bytes_min": 4096, "bytes_max": 67108864, "startup_seconds": 4e-4, "seconds_per_byte": 6e-9}
    cost.write_text(json.dumps({"bands": [band]}))
    said = drawn(tmp_path, "advise", "--trace", GOOGLENET, "--cost", str(cost), "--nodes", "4", "--codecs", "bf16,int8")
    assert {"none", "bf16", "int8", "forward and backward alone", "step (ms)"} <= set(said.split("\n"))
    assert "googlenet_k80_b64 with codecs, over bandwidth" in said and "int8 would save" in said


def test_the_picture_of_the_demo(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(REPOSITORY / "scripts"))
    import demo_report

    def run(name: str, factor: float) -> demo_report.Run:
        return demo_report.Run(
            name, ranks=4, gradient_bytes=25_000_000, step=0.1 * factor, compute=0.06, all_reduce=0.05 * factor,
            bus_gbit_per_second=1.9 / factor, accuracy=0.9, losses=[2.3, 1.0, 0.5],
            step_seconds=[0.1 * factor] * 3, parameters=[])  # fmt: skip

    picture = tmp_path / "demo.svg"
    demo_report.page_of([run("gloo", 3), run("braid", 1)], "4 nodes <of a cloud>", 2.0).save(picture)
    said = texts(picture)
    assert "The same script: 100 ms a step through braid, 300 ms through gloo" in said
    assert said.count("braid\n") == 3 and "4 nodes <of a cloud>" in said
    assert {"NIC: 2 Gbit/s", "1.90", "60.0", "240", "300", "40.0", "100"} <= set(said.split("\n"))
    assert "gloo: 3 steps in 1 s; braid: 3 steps in 0 s" in said
    # A step may be faster than the median of its computation: no bar is negative.
    page = demo_report.page_of([run("gloo", 3), run("braid", 0.1)], "4 nodes", None)
    assert page.panels[1].series["communication"][1] == 0


def test_the_loss_of_trainings(tmp_path):
    course = [{"steps": 10, "seconds": 1.5, "loss": 2.0}, {"steps": 20, "seconds": 3.0, "loss": 0.5}]
    systems = ("braid@learning-rate=0.1", "kfac:mode=spd,damping=0.1@learning-rate=1",
               "kfac:mode=d,damping=0.1@learning-rate=1")  # fmt: skip
    report = {"options": {"dataset": "digits", "nodes": 3, "seeds": 2}, "courses": dict.fromkeys(systems, course)}
    picture = tmp_path / "picture.svg"
    assert plot("-o", picture, text=json.dumps(report)).returncode == 0
    said = texts(picture).split("\n")
    assert {"braid", "kfac:mode=spd", "kfac:mode=d", "steps", "seconds of training"} <= set(said)
    assert "digits, 3 nodes, means of 2 seeds" in said and "braid has the lowest loss after 20 steps: 0.500" in said
    assert said.count("kfac:mode=d") == 1, "both panels have the same lines: one legend"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "it cannot be read: No such file"),
        ("{", "it is no JSON: "),
        ("[]", "nothing that can be drawn; right is what braidctl plan, simulate or advise --format json"),
        ('{"job": "train", "sets": [{"step": null, "steps_measured": 3, "plan": 0}]}', "job 'train', set 1: no step"),
        ('{"comparisons": [], "rows": []}', "no system has been measured"),
    ],
)
def test_what_cannot_be_drawn_is_named(tmp_path, content, said):
    file = tmp_path / "in.json"
    if content is not None:
        file.write_text(content)
    done = plot(file, "-o", tmp_path / "out.svg")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"braid-plot: {file}: {said}")
    assert not (tmp_path / "out.svg").exists()


def test_a_picture_that_cannot_be_written_is_named(tmp_path):
    file = tmp_path / "in.json"
    file.write_text('[{"workers": 1, "planner": "exact", "iteration_seconds": 1, "speedup": 1, "groups": 1}]')
    done = plot(file, "-o", tmp_path / "no" / "out.svg")
    assert done.returncode == 1 and f"{tmp_path}/no/out.svg: it cannot be written: No such file" in done.stderr
    done = plot(file, "-o", "out.gif")
    assert done.returncode == 2 and "'out.gif' is no picture; right is a name that ends with .svg" in done.stderr


def test_spans_that_overlap_have_rows_of_their_own():
    assert rows_of([(10, 30), (20, 50), (30, 45)]) == [0, 1, 0], "the row is free again"
    assert rows_of([(5, 6), (0, 4), (1, 2)]) == [0, 0, 1] and rows_of([]) == []
