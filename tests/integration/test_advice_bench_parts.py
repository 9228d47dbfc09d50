# SPDX-License-Identifier: Apache-2.0
"""The figures and the table of bench/advice, of points that are made up."""

import compare_tool  # noqa: F401
import subprocess

import pytest
from compare_tool import ADVICE
from advice_lib import figures, options, table

PATIENCE_S = 30


def advice(recommended: str, **steps: float) -> dict:
    rows = [
        {"codec": codec, "step_seconds": seconds, "encode_seconds": 0.0, "exposed_seconds": 0.0}
        for codec, seconds in steps.items()
    ]
    return {"recommended": recommended, "reason": "so", "rows": rows, "wire_bits_per_second": 1e9, "warnings": []}


def point(recommended: str, predicted: dict[str, float], measured: dict[str, float]) -> dict:
    return figures.of_point("t", 1000, {"advice": advice(recommended, **predicted), "measured": measured})


def test_errors_and_regret():
    one = point("bf16", {"none": 1.1, "bf16": 0.5, "int8": 0.49}, {"none": 1.0, "bf16": 0.52, "int8": 0.5})
    assert [row["error"] for row in one["rows"]] == pytest.approx([0.1, -1 / 26, -0.02])
    assert (one["best"], one["recommended"]) == ("int8", "bf16")
    assert one["regret"] == pytest.approx(0.04)


def test_ninety_percent_are_nine_of_ten():
    codecs = ["none", *(f"c{i}" for i in range(1, 10))]
    measured = {codec: 1 / (1 + i / 100) for i, codec in enumerate(codecs)}
    said = figures.summary([point("none", dict.fromkeys(codecs, 1.0), measured)])
    assert said["predictions"] == 10
    assert said["median_error"] == pytest.approx(0.045)
    assert said["ninety_percent_within"] == pytest.approx(0.08)
    assert said["worst_error"] == pytest.approx(0.09) and said["median_error_without_codec"] == 0
    assert said["points_beyond_regret"] == 1
    assert figures.summary([]) == {}


def test_the_table_has_a_line_for_each_codec_and_says_what_failed():
    one = point("none", {"none": 1.0, "bf16": 0.99}, {"none": 1.0, "bf16": 1.0})
    report = {"nodes": 4, "steps": 10, "encode_threads": 0.5, "points": [one], "errors": {"t at 7 Mbit/s": "why"}}
    text = table.of({**report, "summary": figures.summary([one])})
    assert "t, NIC 1000 Mbit/s: so" in text and "  bf16 " in text and "-1.0%" in text
    assert "recommended none, shortest none: regret 0.0%" in text
    assert "t at 7 Mbit/s FAILED: why" in text


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--traces", "lost", "traces/ has no lost.json"),
        ("--traces", "resnet50_b4@fast", "'fast' is no scale"),
        ("--nic-mbit", "1", "'1' is no bandwidth; right is"),
        ("--codecs", "int8,int8", "'int8' stands twice"),
        ("--nodes", "1", "is not a number from 2 to"),
        ("--encode-threads", "0", "is not a number from 0.01"),
    ],
)
def test_a_wrong_command_line_says_what_would_be_right(option, value, said):
    done = subprocess.run([ADVICE, option, value], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert option in done.stderr and said in done.stderr


def test_a_codec_keeps_its_parameters():
    chosen = options.parse(["--codecs", "int8:block=64,seed=1,topk:ratio=0.1", "--nic-mbit", "0,1000", "--nodes", "8"])
    assert chosen.codecs == ["int8:block=64,seed=1", "topk:ratio=0.1"]
    assert chosen.nic_mbit == [0, 1000] and 0 < chosen.encode_threads <= 1
