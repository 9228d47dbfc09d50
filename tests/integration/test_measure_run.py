# SPDX-License-Identifier: Apache-2.0
"""The course of a run of bench/: systems that work, systems that fail, and the processes that measure."""

import json
import os
import sys
import types

import pytest
from bench_tools import COMPARE
from measure import cluster, group, run
from measure.compare import main, wire
from measure.compare.figures import Sample
from measure.errors import Deadline, RunFailed, SystemFailed
from measure.programs import Program
from measure.scale import main as scale
from measure.scale.figures import of_point
from test_measure_figures import COURSE

PATIENCE_S = 30


class FakeSystem:
    """Works, or fails where it is told to."""

    versions = {"fake": "1"}
    flows = 8

    def __init__(self, name: str, fails_at: str):
        self.name, self._fails_at = name, fails_at

    def start(self):
        self._fail("start")

    def measure(self, case):
        self._fail(case.bytes)
        return Sample(0.1, 0.2, 0.3, 0.4 if case.bytes == 2000 else None)

    def close(self):
        pass

    def _fail(self, now):
        if self._fails_at == now:
            raise SystemFailed("it has ended\nand said nothing")


class FakeCluster:
    def __init__(self, *_):
        pass

    def check(self):
        pass

    def end(self):
        return None


@pytest.fixture
def compare(monkeypatch, tmp_path):
    """Compares with systems that fail where they are told to: the exit code, and the report."""
    monkeypatch.setattr(main, "Cluster", FakeCluster)
    monkeypatch.setattr(main.Comparison, "missing", lambda _: [])
    monkeypatch.setattr(run.signal, "signal", lambda *_: None)
    monkeypatch.setattr(main.wire, "measure", lambda _, n: wire.Wire(n, [1.5, 1.7]))

    def compare(*arguments, **failures):
        monkeypatch.setattr(main.systems, "make", lambda name, *_: FakeSystem(name, failures.get(name)))
        results = tmp_path / "results.json"
        code = main.main(["--sizes", "1000,2000", "--repeats", "2", "--json", str(results), *arguments])
        return code, json.loads(results.read_text())

    return compare


def test_a_whole_comparison(compare, capsys):
    code, report = compare("--delay-ms", "2.5", "--loss-percent", "0.1")
    assert code == 0 and report["errors"] == {} and report["versions"]["fake"] == "1"
    assert report["wire_gbit_per_second"] == pytest.approx(1.6) and report["wire_connections"] == 8
    assert report["options"]["repeats"] == 2 and report["options"]["systems"] == ["braid", "gloo", "openmpi"]
    assert len(report["rows"]) == 6 and all(len(row["repeats"]) == 2 for row in report["rows"])
    assert {(row["delay_ms"], row["loss_percent"]) for row in report["rows"]} == {(2.5, 0.1)}
    heading, _, *lines = capsys.readouterr().out.splitlines()
    assert "round trip 5 ms" in heading and "loss 0.1 %" in heading
    assert [line.split()[2] for line in lines[:6]] == 2 * ["braid", "gloo", "openmpi"] and len(lines) == 8


@pytest.mark.parametrize(("fails_at", "rows_left"), [("start", 4), (2000, 5)])
def test_the_error_of_one_system_leaves_the_others_their_rows(compare, capsys, fails_at, rows_left):
    code, report = compare(gloo=fails_at)
    assert code == 1 and report["errors"] == {"gloo": "it has ended\nand said nothing"}
    assert len(report["rows"]) == rows_left
    assert capsys.readouterr().out.splitlines()[-1] == "gloo FAILED: it has ended"


def test_a_point_that_fails_leaves_the_others_their_rows(monkeypatch, tmp_path, capsys):
    def fake(point, _):
        if point.nodes == 3:
            raise RunFailed("the cluster did not start:\nbecause")
        addresses = [f"10.0.0.{n + 1}" for n in range(point.nodes)]
        return of_point(point, [COURSE] * point.nodes, addresses, 0.5, 0.01)

    monkeypatch.setattr(scale, "measure", fake)
    monkeypatch.setattr(scale.Points, "missing", lambda _: [])
    monkeypatch.setattr(run.signal, "signal", lambda *_: None)
    results = tmp_path / "scale.json"
    assert scale.main(["--points", "2,3,4", "--json", str(results)]) == 1
    report = json.loads(results.read_text())
    roles = ("coordinator", "member")
    assert [(row["point"], row["role"]) for row in report["rows"]] == [
        (point, role) for point in ("2x1x1", "4x1x1") for role in roles
    ]
    assert list(report["errors"]) == ["3x1x1"] and report["rows"][3]["plan_report_bytes"] == 1000
    _, points, formation, *_ = capsys.readouterr().out.splitlines()
    assert points.split()[-2:] == ["2x1x1", "4x1x1"] and formation.split()[1:] == ["500.00", "ms"] * 2


# A peer whose all-reduce takes as many milliseconds as its rank, and breaks at the size 8.
WORKER = """
import os, sys, time
from measure.compare.peer import Peer
class Fake(Peer):
    rank = int(os.environ["RANK"])
    versions = {"fake": "1"}
    def prepare(self, case):
        if case.bytes == 8:
            sys.exit("cannot do that")
        return lambda: time.sleep(self.rank / 1e3)
    def barrier(self): pass
Fake().serve()
"""


@pytest.fixture
def workers(tmp_path):
    def launch(variables):
        env = {**os.environ, **variables, "PYTHONPATH": os.path.dirname(COMPARE)}
        return [Program([sys.executable, "-c", WORKER], {**env, "RANK": str(rank)}) for rank in (0, 3)]

    some = types.SimpleNamespace(state=types.SimpleNamespace(directory=str(tmp_path)))
    made = group.Group.of(some, launch, 2, PATIENCE_S)
    assert made.versions == {"fake": "1"}
    yield made
    made.close()


def test_workers_measure_what_they_are_told(workers):
    for size in (4, 1000):
        answers = workers.ask({"case": {"bytes": size}, "iterations": 1}, Deadline(PATIENCE_S))
        assert [len(answer["seconds"]) for answer in answers] == [1, 1]
        slowest = group.slowest(workers.ask({"iterations": 3}, Deadline(PATIENCE_S)), "seconds")
        assert len(slowest) == 3 and min(slowest) >= 0.003


def test_the_last_words_of_a_worker_are_told(workers):
    with pytest.raises(SystemFailed, match="cannot do that"):
        workers.ask({"case": {"bytes": 8}, "iterations": 3}, Deadline(PATIENCE_S))


def test_a_worker_that_does_not_answer_is_not_waited_for(workers):
    with pytest.raises(SystemFailed, match="waited 0.3 s"):
        workers.ask({"case": {"bytes": 4}, "iterations": 10**9}, Deadline(0.3))
    for program in workers._programs:  # they would count to a thousand million
        program.stop(grace_s=0)
