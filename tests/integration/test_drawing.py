# SPDX-License-Identifier: Apache-2.0
"""braidctl draw, and the tools in Python that it draws for."""

import json
import os
import re
import subprocess
import xml.etree.ElementTree

import pytest
from braid_build import BRAIDCTL, PATIENCE_S, REPOSITORY
from compare_tool import COMPARE  # noqa: F401 (makes scripts/ importable)

import drawing

pytestmark = pytest.mark.skipif(not os.path.exists(BRAIDCTL), reason="braidctl is not built")

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [text.text for text in xml.etree.ElementTree.fromstring(svg).iter(f"{SVG}text")]


def example() -> dict:
    """The one of docs/figures.md."""
    page = (REPOSITORY / "docs" / "figures.md").read_text()
    return json.loads(re.search(r"<<'END'\n(.*?)\nEND\n", page, re.DOTALL)[1])


def test_the_documents_example_is_drawn_from_a_file_and_through_a_pipe(tmp_path):
    path = tmp_path / "steps.json"
    path.write_text(json.dumps(example()))
    done = subprocess.run(
        [BRAIDCTL, "draw", str(path)], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert {"Training steps", "step (ms)", "4 nodes", "communication", "loss", "steps"} <= set(texts(done.stdout))
    assert drawing.svg(example(), BRAIDCTL) == done.stdout


def test_a_field_that_does_not_fit_is_named():
    wrong = example()
    wrong["panels"][0]["series"][1]["values"][1] = "19"
    with pytest.raises(drawing.DrawingError, match=re.escape(
            'braidctl: /dev/stdin: panels[0].series[1].values[1]: "19" is no number; right is a number from 0')):
        drawing.svg(wrong, BRAIDCTL)


def test_a_program_that_is_not_there_is_named(tmp_path):
    with pytest.raises(drawing.DrawingError, match="nowhere"):
        drawing.svg(example(), tmp_path / "nowhere")


def test_the_picture_of_the_demo():
    pytest.importorskip("torch")
    import demo_report

    def run(name: str, factor: float) -> demo_report.Run:
        return demo_report.Run(
            name, ranks=4, gradient_bytes=25_000_000, step=0.1 * factor, compute=0.06, all_reduce=0.05 * factor,
            bus_gbit_per_second=1.9 / factor, accuracy=0.9, losses=[2.3, 1.0, 0.5],
            step_seconds=[0.1 * factor] * 3, parameters=[])  # fmt: skip

    figure = demo_report.figure_of([run("gloo", 3), run("braid", 1)], "4 nodes <of a cloud>", 2.0)
    said = texts(drawing.svg(figure, BRAIDCTL))
    assert "The same script through gloo and braid" in said and "4 nodes <of a cloud>" in said
    assert {"NIC: 2 Gbit/s", "1.90", "60", "240", "300", "40", "100"} <= set(said)  # both steps and their parts
    assert "gloo: 3 steps in 1 s, braid: 3 steps in 0 s" in said
    # A step may be faster than the median of its computation: no bar is negative.
    fast = demo_report.figure_of([run("gloo", 3), run("braid", 0.1)], "4 nodes", None)
    drawing.svg(fast, BRAIDCTL)
