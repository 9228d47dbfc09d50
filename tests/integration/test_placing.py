# SPDX-License-Identifier: Apache-2.0
"""braidctl place as users call it: what it prints, and what it says about mistakes."""

import json
import os
import pathlib
import subprocess

import pytest
from braid_build import BRAIDCTL, ran

pytestmark = pytest.mark.skipif(not os.path.exists(BRAIDCTL), reason="braidctl is not built")

ITEMS = [
    {"id": "large", "shape": [2048, 2048], "cost": 0.012, "bytes": 4000},
    *({"id": f"small{i}", "shape": [64, 64], "cost": 0.003, "bytes": 4000} for i in range(3)),
]
LINK = {"startup_seconds": 0, "seconds_per_byte": 1e-6}


def run(path: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess:
    return ran([BRAIDCTL, "place", "--items", str(path), *arguments])


@pytest.fixture
def items(tmp_path) -> pathlib.Path:
    path = tmp_path / "items.json"
    path.write_text(json.dumps({"items": ITEMS, "link": LINK}))
    return path


def placed(path: pathlib.Path, *arguments: str) -> dict:
    done = run(path, *arguments, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_a_placement_as_json(items):
    placement = placed(items, "--ranks", "4")
    assert placement["makespan_seconds"] == placement["bound_seconds"] == pytest.approx(0.015)
    assert (placement["rule"], placement["ranks"], placement["is_optimal"]) == ("best", 4, True)
    owners = {item["id"]: item["owner"] for item in placement["items"]}
    assert owners["large"] is None and placement["everybody_seconds"] == 0.012
    assert sorted(owners[f"small{i}"] for i in range(3)) == [0, 1, 2]
    assert placement["loads"] == pytest.approx([0.015, 0.015, 0.015, 0.012])
    ends = [spread["end_seconds"] for spread in placement["spreads"]]
    assert ends == pytest.approx([0.007, 0.011, 0.015])
    assert placement["planning_seconds"] >= 0


RULES = ["exact", "lpt", "lbp", "lbp:d", "lbp:d2", "lbp:t", "round-robin", "block", "megatron", "kaisa:0.5"]


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_is_better_than_best(items, rule):
    best, named = placed(items, "--ranks", "4"), placed(items, "--ranks", "4", "--rule", rule)
    assert best["bound_seconds"] <= best["makespan_seconds"] <= named["makespan_seconds"]
    assert named["rule"] == rule and max(named["loads"]) <= named["makespan_seconds"] * (1 + 1e-12)


def test_a_placement_as_tables(items):
    text = run(items, "--ranks", "8", "--rule", "lbp:t").stdout
    assert "4 items on 8 ranks; rule lbp:t\nmakespan 21.000 ms: at most 1.54 times the least possible" in text
    assert "7 others" in text and "2048x2048" in text and text.count("everybody") == 3
    assert "no placement is better" in run(items, "--ranks", "4").stdout


def test_without_a_link_spreading_takes_no_time(tmp_path):
    path = tmp_path / "items.json"
    path.write_text(json.dumps({"items": ITEMS, "_note": "passed over"}))
    assert placed(path, "--ranks", "4")["makespan_seconds"] == 0.012


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"items": []}, "there are 0 items to place; right are 1 to 100000"),
        ({"items": [ITEMS[1], ITEMS[1]]}, "item 1 'small0': its id stands twice"),
        ({"items": [{**ITEMS[0], "cost": -1}]}, "items[0].cost: -1 is negative; right is a time in seconds"),
        ({"items": [{**ITEMS[0], "cost": float("nan")}]}, "no NaN"),
        ({"items": [{**ITEMS[0], "bytes": 1.5}]}, "items[0].bytes: 1.5 is no integer"),
        ({"items": [{**ITEMS[0], "shape": []}]}, "items[0].shape: a list of 0 has another length"),
        ({"items": [{**ITEMS[0], "shape": [3, 0]}]}, "items[0].shape[1]: 0 is too small"),
        ({"items": [{**ITEMS[0], "id": ""}]}, 'items[0].id: "" is empty'),
        ({"items": [{"id": "a"}]}, "items[0].shape is missing; right is a list of 1 to 8 integers"),
        ({"items": [{**ITEMS[0], "owner": 1}]}, 'items[0]."owner" is not known; right are id, shape, cost, bytes'),
        ({"links": {}}, '"links" is not known; right are items, link'),
        ({"link": {"startup_seconds": 1}}, "link.seconds_per_byte is missing"),
        ({"items": [{**one, "cost": 1e308} for one in ITEMS]}, "the sum of all times is infinite"),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path, change, said):
    path = tmp_path / "items.json"
    path.write_text(json.dumps({"items": ITEMS, "link": LINK, **change}))
    done = run(path, "--ranks", "4")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{path}: " in done.stderr and said in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ranks", "0"], "--ranks: '0' does not fit; right is an integer from 1 to 65536"),
        (["--ranks", "70000"], "--ranks"),
        (["--ranks", "4", "--rule", "fastest"], "no rule of placement is named 'fastest'; there are best, exact, lpt"),
        (["--ranks", "4", "--rule", "kaisa:2"], "--rule: 'kaisa:2' does not fit"),
        ([], "--ranks is required"),
    ],
)
def test_mistakes_on_the_command_line_end_with_2(items, arguments, said):
    done = run(items, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_file_that_is_not_there_is_named(tmp_path):
    done = run(tmp_path / "none.json", "--ranks", "4")
    assert done.returncode == 1 and "none.json" in done.stderr
