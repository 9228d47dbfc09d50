# SPDX-License-Identifier: Apache-2.0
"""bench/kfac on a real cluster of two nodes."""

import json

import pytest
from bench_tools import KFAC
from braid_build import BUILD, IS_SANITIZED, PATIENCE_S, ran
from measure.training import kfac_figures, kfac_steps
from real_cluster import needs_daemons

MODES = ["d", "mpd", "spd", "dp", "alone"]


@needs_daemons
@pytest.mark.skipif(IS_SANITIZED, reason="torch's processes do not load a sanitizer")
def test_all_modes_take_their_turns(tmp_path):
    results = tmp_path / "results.json"
    line = ["--nodes", "2", "--build", str(BUILD), "--timeout", str(2 * PATIENCE_S), "--width", "24,16"]
    line += ["--layers", "2", "--rounds", "2", "--steps", "3", "--settling-steps", "2", "--waiting-ms", "4"]
    if missing := kfac_steps.KfacSteps(kfac_steps.parse(line)).missing():
        pytest.skip("; ".join(missing))
    done = ran([KFAC, *line, "--json", str(results)], timeout=6 * PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(results.read_text())
    assert [(row["width"], row["mode"]) for row in report["rows"]] == [(w, m) for w in (24, 16) for m in MODES]
    for row in report["rows"]:
        assert all(len(row["steps"][phase]) == 6 for phase in ("inverses", "factors")) and row["mode"] in done.stdout
        # It waits in both passes; the first layer's wait may begin 2 ms before the step.
        assert min(map(min, row["steps"].values())) >= 0.006


def answer(rank, **factors):
    of_mode = {"d": [2.0, 2.0], "mpd": [1.0, 1.0], "spd": [0.9, 0.9], "dp": [0.5, 0.5], "alone": [0.4, 0.4]}
    return {"inverses": {mode: [each - rank for each in some] for mode, some in of_mode.items()},
            "factors": {**of_mode, **factors}}  # fmt: skip


def test_overlap_is_the_part_of_what_could_be_hidden_that_is_hidden():
    ranks = [answer(0), answer(0.1, mpd=[0.9, 0.8], spd=[0.2, 0.95])]
    rows = {row["mode"]: row for row in kfac_figures.rows(ranks)}
    assert list(rows) == MODES
    # A step takes as long as on the slowest rank.
    assert rows["spd"]["steps"]["factors"] == [0.9, 0.95] and rows["spd"]["factors_seconds"] == pytest.approx(0.925)
    assert rows["spd"]["overlap"] == pytest.approx((1.0 - 0.925) / (1.0 - 0.4))
    assert [rows[mode]["to_first"] for mode in MODES] == [1.0, 0.5, 0.45, 0.25, None]
    assert all(rows[mode]["overlap"] is None for mode in MODES if mode != "spd")


def test_where_nothing_could_be_hidden_there_is_no_overlap():
    rows = kfac_figures.rows([answer(0, mpd=[0.3, 0.3])])
    assert [row["overlap"] for row in rows] == [None] * len(MODES)
