# SPDX-License-Identifier: Apache-2.0
"""braidctl advise as users call it: what it prints, and what it says about mistakes."""

import json
import os
import pathlib
import subprocess

import pytest
from braid_build import BENCH, BRAIDCTL, PATIENCE_S, REPOSITORY, ran

pytestmark = pytest.mark.skipif(not os.path.exists(BRAIDCTL), reason="braidctl is not built")

GOOGLENET = str(REPOSITORY / "traces" / "googlenet_k80_b64.json")
FIELDS = ["codec", "step_seconds", "communication_seconds", "encode_seconds", "exposed_seconds", "wire_bytes"]


def run(*arguments: str) -> subprocess.CompletedProcess:
    return ran([BRAIDCTL, "advise", *arguments])


def output(*arguments: str) -> str:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rates(codec: str, bytes_: int, gb_per_second: float) -> str:
    line = {"codec": codec, "bytes": bytes_, "encoded_bytes": bytes_ // 4}
    line |= dict.fromkeys(
        ("encode", "encode_with_memory", "decode", "decode_and_add"), {"gb_per_second": gb_per_second}
    )
    return json.dumps(line) + "\n"


@pytest.fixture
def files(tmp_path: pathlib.Path) -> list[str]:
    """Options: GoogLeNet at 2 Gbit/s; the rates of three codecs."""
    cost = tmp_path / "cost.json"
    band = {"bytes_min": 100, "bytes_max": 100_000_000, "startup_seconds": 4e-4, "seconds_per_byte": 6e-9}
    cost.write_text(json.dumps({"bands": [band]}))
    path = tmp_path / "rates.json"
    path.write_text(rates("bf16", 1 << 20, 5) + rates("int8", 1 << 20, 5) + rates("int4", 1 << 20, 0.1))
    codecs = ["--rates", str(path), "--codecs", "bf16,int8,int4"]
    return ["--trace", GOOGLENET, "--cost", str(cost), "--nodes", "4", *codecs]


def replaced(arguments: list[str], option: str, value: str) -> list[str]:
    place = arguments.index(option) + 1
    return [*arguments[:place], value, *arguments[place + 1 :]]


def test_the_advice_as_json(files):
    advice = json.loads(output(*files, "--format", "json"))
    assert list(advice)[:3] == ["recommended", "reason", "rows"]
    assert all(list(row)[:6] == FIELDS for row in advice["rows"])
    by = {row["codec"]: row for row in advice["rows"]}
    assert list(by) == ["none", "bf16", "int8", "int4"]
    assert advice["recommended"] == "int8", "bf16 hides all of its communication, too, but only just"
    assert advice["reason"].startswith("int8 would save 11")
    assert by["bf16"]["step_seconds"] == pytest.approx(by["int8"]["step_seconds"], rel=0.01)
    assert by["bf16"]["cautious_step_seconds"] > 1.03 * by["int8"]["cautious_step_seconds"]
    assert by["int4"]["step_seconds"] > by["none"]["step_seconds"]
    assert by["bf16"]["wire_bytes"] == pytest.approx(by["none"]["wire_bytes"] / 2)
    names = [name for group in advice["groups"] for name in group["tensors"]]
    assert sorted(names) == sorted(json.loads(pathlib.Path(GOOGLENET).read_text())["names"])


@pytest.mark.skipif(not os.path.exists(BENCH), reason="braid-bench is not built")
def test_rates_of_braid_bench(files, tmp_path):
    path = tmp_path / "bench.json"
    text = ""
    for size in ("64KiB", "1MiB"):
        text += subprocess.run(
            [BENCH, "codecs", "--json", "--bytes", size, "--repeats", "1"],
            capture_output=True, text=True, timeout=PATIENCE_S, check=True,
        ).stdout  # fmt: skip
    path.write_text(text)
    place = files.index("--codecs")
    arguments = replaced(files[:place], "--rates", str(path))
    advice = json.loads(output(*arguments, "--format", "json"))
    assert [row["codec"] for row in advice["rows"]] == [
        "none", "bf16", "fp16", "int8", "int4", "fp8-e4m3", "ef-sign", "1bit", "2bit", "topk"
    ]  # fmt: skip
    many = run(*replaced(arguments, "--nodes", "128"), "--format", "json")
    assert "2bit" not in [row["codec"] for row in json.loads(many.stdout)["rows"]]
    assert "128 nodes are too many; right are up to 127" in many.stderr


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--nodes", "1", "right is an integer from 2 to"),
        ("--planner", "best", "there are wfbp, single"),
        ("--encode-threads", "0", "right is a number from 0.01 to"),
    ],
)
def test_a_wrong_command_line_says_what_would_be_right(files, option, value, said):
    done = run(*files, option, value) if option not in files else run(*replaced(files, option, value))
    assert (done.returncode, done.stdout) == (2, "")
    assert option in done.stderr and said in done.stderr


def test_a_wrong_file_is_named(files, tmp_path):
    def refused(option: str, value: str) -> str:
        done = run(*replaced(files, option, value))
        assert (done.returncode, done.stdout) == (1, "")
        return done.stderr

    bad = tmp_path / "bad.json"
    assert str(bad) in refused("--rates", str(bad))
    bad.write_text(rates("bf16", 1 << 20, 0))
    assert f"{bad}:1: encode.gb_per_second: 0" in refused("--rates", str(bad))
    assert "--codecs: " in refused("--codecs", "int9")
    assert "has no rates of 1bit; right is" in refused("--codecs", "1bit")
    bad.write_text(json.dumps({"names": ["a"], "numel": [1], "tb": [1], "dtype": "bfloat16"}))
    assert "names[0] 'a' is bfloat16; codecs encode float32 alone" in refused("--trace", str(bad))
    band = {"bytes_min": 1, "bytes_max": 9, "startup_seconds": 1, "seconds_per_byte": 0}
    bad.write_text(json.dumps({"bands": [band]}))
    assert "bands[0].seconds_per_byte: 0 is no bandwidth" in refused("--cost", str(bad))
