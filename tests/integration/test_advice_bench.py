# SPDX-License-Identifier: Apache-2.0
"""bench/advice on a real cluster of two nodes."""

import json
import subprocess

import pytest
from braid_build import BUILD, IS_SANITIZED, PATIENCE_S
from compare_tool import ADVICE
from real_cluster import needs_daemons

pytestmark = [
    needs_daemons,
    pytest.mark.skipif(IS_SANITIZED, reason="what a sanitizer costs says nothing about codecs"),
]


def test_predictions_are_held_against_measured_steps(tmp_path):
    path = tmp_path / "advice.json"
    arguments = ["--traces", "fashion_mnist_cnn_b32", "--nic-mbit", "2000", "--nodes", "2", "--steps", "12"]
    done = subprocess.run(
        [ADVICE, *arguments, "--codecs", "bf16,topk:ratio=0.1", "--json", str(path), "--build", str(BUILD)],
        capture_output=True, text=True, timeout=6 * PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(path.read_text())
    assert report["errors"] == {} and report["steps"] == 12
    (point,) = report["points"]
    assert [row["codec"] for row in point["rows"]] == ["none", "bf16", "topk:ratio=0.1"]
    for row in point["rows"]:
        assert row["measured_seconds"] > 0 and row["predicted_seconds"] > 0
        assert row["error"] == pytest.approx(row["predicted_seconds"] / row["measured_seconds"] - 1)
    codecs = {row["codec"]: row["measured_seconds"] for row in point["rows"]}
    assert point["best"] == min(codecs, key=codecs.get) and point["recommended"] in codecs
    assert point["regret"] == pytest.approx(codecs[point["recommended"]] / codecs[point["best"]] - 1)
    assert report["summary"]["predictions"] == 3
    assert "fashion_mnist_cnn_b32, NIC 2000 Mbit/s: " in done.stdout
    assert "3 predictions: median error " in done.stdout
