# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/scale that need no cluster: arguments, fits, sockets, the course of a run."""

import collections
import json
import subprocess

import pytest
from compare_tool import SCALE
from compare_lib.errors import CompareError
from scale_lib import figures, fit, formulas, main, measure, options, probe
from scale_lib.options import Point

PATIENCE_S = 30


@pytest.mark.parametrize(
    ("text", "point"), [("8", Point(8)), ("8x4", Point(8, 4)), ("16x2x3", Point(16, 2, 3))]
)
def test_points_are_nodes_ranks_and_jobs(text, point):
    assert options.parse(["--points", text]).points == [point]
    assert str(Point(8, 4)) == "8x4x1" and Point(16, 2, 3).trainers == 96


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--points", "1"], "2 to 128 nodes"),
        (["--points", "8x"], "not a point"),
        (["--points", "8x1x1x1"], "not a point"),
        (["--points", "8x17"], "1 to 16 ranks"),
        (["--points", "128x16"], "2048 trainers, 256 are the most"),
        (["--points", "4,4x1"], "twice"),
        (["--trace", "/no/such/trace"], "there is no file"),
        (["--set", "flows"], "not KEY=VALUE"),
        (["--steps", "0"], "not a number from 1"),
        (["--json", "/no/such/folder/file"], "no such folder"),
    ],
)
def test_bad_arguments_are_told_before_anything_starts(arguments, complaint, capsys):
    with pytest.raises(SystemExit) as end:
        options.parse(arguments)
    assert end.value.code == 2 and complaint in capsys.readouterr().err


def test_a_build_that_is_missing_is_named(tmp_path):
    done = subprocess.run(
        [SCALE, "--build", str(tmp_path)],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and f"{tmp_path}/bin/braidd is missing" in done.stderr


def test_what_is_no_trace_is_refused(tmp_path):
    trace = tmp_path / "trace.json"
    trace.write_text('{"names": ["a", "b"], "numel": [640, 7]}')
    assert measure.tensors_of(str(trace), 64) == {"names": ["b", "a"], "counts": [1, 10]}
    for text in ("[]", "{", '{"names": [], "numel": []}', '{"names": ["a"], "numel": [1, 2]}'):
        trace.write_text(text)
        with pytest.raises(CompareError, match="is no trace"):
            measure.tensors_of(str(trace), 1)


def test_a_fit_finds_the_coefficients():
    rows = [[1.0, n, n * n] for n in (2.0, 4.0, 8.0, 16.0, 2048.0)]
    found = fit.least_squares(rows, [7 + 3 * n + 0.5 * square for _, n, square in rows])
    assert found.coefficients == pytest.approx([7, 3, 0.5], rel=1e-5)
    assert found.residual_share < 1e-6


def test_a_fit_tells_how_far_off_it_is():
    found = fit.least_squares([[1.0]] * 4, [9.0, 11.0, 10.0, 10.0])
    assert found.coefficients == pytest.approx([10]) and found.residual_max == pytest.approx(1)
    assert found.residual_share == pytest.approx(1 / 11)


@pytest.mark.parametrize("rows", [[], [[1.0, 2.0]], [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]])
def test_a_fit_does_not_guess(rows):
    assert fit.least_squares(rows, [1.0] * len(rows)) is None


def test_sockets_are_told_apart():
    text = """\
LISTEN 0 4096 10.77.0.1:7410 0.0.0.0:* cubic cwnd:10
LISTEN 0 128 10.77.0.1:40001 0.0.0.0:* cubic cwnd:10
ESTAB 0 0 10.77.0.1:7410 10.77.0.2:51000 cubic bytes_sent:100 bytes_received:40 data_segs_out:3 data_segs_in:2
ESTAB 0 0 10.77.0.1:51002 10.77.0.2:7410 cubic bytes_sent:10 data_segs_out:1 segs_in:7
ESTAB 0 0 10.77.0.1:40001 10.77.0.2:39000 cubic bytes_sent:5000
ESTAB 0 0 10.77.0.1:9431 10.77.0.1:39001 cubic bytes_sent:700
TIME-WAIT 0 0 10.77.0.1:7410 10.77.0.3:51007
"""
    traffic, kinds = probe.parse_sockets(text)
    assert kinds == {"control": 2, "flow": 1, "listening": 2}
    assert traffic == {"10.77.0.2": probe.Traffic(110, 40, 4, 2)}


def snapshot(seconds: float, sent: int, received: int, **differing) -> probe.Snapshot:
    counters = {
        "braid_control_messages_total.sent": differing.get("messages_sent", 0),
        "braid_control_messages_total.received": differing.get("messages_received", 0),
        "braid_operations_total.all-reduce": differing.get("operations", 0),
        "braid_chunks_total.sent": 0,
    }
    return probe.Snapshot(
        seconds, cpu_seconds=seconds / 10, memory_bytes=1 << 20, resident_bytes=2 << 20, threads=6,
        descriptors=collections.Counter(socket=3), counters=counters, flows=8, peers=1,
        control={"10.0.0.1": probe.Traffic(sent, received, sent // 10, received // 10)},
        sockets=collections.Counter(control=1, flow=8, listening=9),
    )  # fmt: skip


def course() -> figures.Course:
    """10 bytes a second of heartbeats; then one operation of 76 bytes; then two reports of 1000 bytes,
    and one round of 500."""
    return figures.Course(
        met_seconds=10,
        base=snapshot(0, 0, 0),
        formed=snapshot(10, 300, 300, messages_sent=9, messages_received=9),
        idle=snapshot(20, 400, 400, messages_sent=9, messages_received=9),
        registered=snapshot(20, 400, 400, messages_sent=9, messages_received=9),
        operated=snapshot(21, 486, 410, messages_sent=10, messages_received=9, operations=1),
        stepped=snapshot(31, 2586, 1010, messages_sent=23, messages_received=21, operations=11),
    )


def test_heartbeats_are_no_operations():
    node = figures.of_node(Point(4), course())
    assert node["idle_bytes_per_second"] == 10 and node["idle_packets_per_second"] == 1
    assert node["idle_cpu_share"] == pytest.approx(0.1)
    assert node["formation_bytes_sent"] == 300 and node["formation_messages_sent"] == 9
    assert node["operation_bytes"] == 76 and node["operation_messages"] == 1


def test_plans_are_told_from_the_nodes_that_are_no_neighbours_of_the_coordinator():
    addresses = [f"10.0.0.{n}" for n in range(1, 5)]
    found = figures.plan_traffic([course()] * 4, addresses)
    assert found == {
        "plan_reports": 2, "plan_rounds": 1, "plan_report_bytes": 1000, "plan_round_bytes": 500
    }  # fmt: skip
    assert figures.plan_traffic([course()] * 3, addresses[:3]) is None


def test_a_whole_run(monkeypatch, tmp_path, capsys):
    def fake(point, _):
        if point.nodes == 3:
            raise CompareError("the cluster did not start:\nbecause")
        addresses = [f"10.0.0.{n + 1}" for n in range(point.nodes)]
        return figures.of_point(point, [course()] * point.nodes, addresses, 0.5, 0.01)

    monkeypatch.setattr(main, "measure", fake)
    monkeypatch.setattr(main, "check", lambda _: None)
    monkeypatch.setattr(main.course.signal, "signal", lambda *_: None)
    results = tmp_path / "scale.json"
    assert main.main(["--points", "2,3,4", "--json", str(results)]) == 1
    report = json.loads(results.read_text())
    assert [point["nodes"] for point in report["points"]] == [2, 4]
    assert list(report["errors"]) == ["3x1x1"]
    # All nodes are alike here: only what is constant can be known.
    assert {one["quantity"] for one in report["formulas"]} == {
        one.quantity for one in formulas.FORMULAS if one.terms == ("1",)
    }
    printed = capsys.readouterr().out
    assert "3x1x1 FAILED: the cluster did not start:" in printed and "500.00 ms" in printed
