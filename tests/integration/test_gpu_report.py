# SPDX-License-Identifier: Apache-2.0
"""bench/gpu/measure: its steps and their limits, and what becomes of figures."""

import json

import pytest
from bench_tools import GPU
from braid_build import ran
from measure.errors import RunFailed, SystemFailed
from measure.gpu import bars, course, figures, main, plan, report

from cluster_lib.errors import ClusterError  # `measure` leads to it
from cluster_lib.state import LOOPBACK, NAMESPACES

SLOW_WIRE = {"network": plan.CAPPED, "computing_seconds": 0.2, "wire_seconds": 0.4}


def steps_of(test: str, system: str, step: float, held: float = 0.1) -> dict:
    return {"test": test, "system": system, "step_seconds": step, "backward_held_seconds": held, **SLOW_WIRE}


def rate_of(network: str, system: str, seconds: float, size: int = 25_000_000) -> dict:
    figures_of_it = {"median_seconds": seconds, "bus_gbit_per_second": 1.0, "cpu_seconds_per_gigabyte": 2.0}
    named = {"test": "rates", "network": network, "system": system, "bytes": size}
    return {**named, **figures_of_it, "machine_seconds_per_gigabyte": None}


# What a run on a GPU would leave.
RECORDED = [
    {"test": "probe device", "name": "NVIDIA H100"},
    {"test": "probe copy", "bytes": 4096, "d2h_gb_s": 1.0, "h2d_gb_s": 1.0, "both_gb_s": 2.0, "call_us": 1.5},
    {"test": "probe copy", "bytes": 64 << 20, "d2h_gb_s": 50.0, "h2d_gb_s": 40.0, "both_gb_s": 80.0, "call_us": 1.5},
    {"test": "probe register", "kind": "read-only mapping", "error": "cuMemHostRegister: NOT_SUPPORTED"},
    {"test": "probe holder", "holder": "cuMemFree", "holder_waits": True},
    {"test": "probe refused", "probe": "export", "error": "this driver has no cuMemCreate"},
    {"test": "collectives", "network": plan.OPEN, "system": plan.BRAID, "done": 184, "wrong": 0, "refused": 0,
     "named": []},
    {"test": "collectives", "network": plan.OPEN, "system": plan.NCCL, "done": 184, "wrong": 0, "refused": 1,
     "named": ["gather of 1 bool: no"]},
    {"test": "copies", "network": plan.OPEN, "system": plan.BRAID, "to_host_gb_per_second": 47.5,
     "to_device_gb_per_second": 30.0, "to_host_copies": 8, "to_device_copies": 8},
    steps_of("ddp", plan.BRAID, 0.44),
    steps_of("ddp", plan.NCCL, 1.7),
    steps_of("ddp", plan.NCCL_SOCKETS, 0.40),
    steps_of("fsdp", plan.BRAID, 0.47),
    rate_of(plan.UNEVEN, plan.BRAID, 0.15),
    rate_of(plan.UNEVEN, plan.NCCL_SOCKETS, 0.5),
    {"test": "wire", "network": plan.OPEN, "system": plan.IPERF, "gbit_per_second": 20.0, "connections": 8,
     "machine_seconds_per_gigabyte": None},
    {"test": "beside", "network": plan.CAPPED, "system": plan.BRAID, "products_alone_per_second": 400.0,
     "products_beside_per_second": 396.0, "ratio": 0.99, "outlasted": True},
    {"test": "communicators", "network": plan.CAPPED, "system": plan.NCCL, "count": 8, "bytes": 25_000_000,
     "median_seconds": 0.1, "bus_gbit_per_second": 2.0},
]  # fmt: skip


def test_each_bar_is_a_ratio_of_one_run():
    found = bars.bars(RECORDED, seconds=400, seconds_max=470)
    assert [(bar.held, bar.value) for bar in found] == [
        (True, 400),  # seconds
        (True, 0),  # wrong or refused: braid's alone
        (True, pytest.approx(47.5 / 50)),  # copies
        (False, pytest.approx(30 / 40)),
        (True, pytest.approx(0.43 / 0.4)),  # DDP: ideal, NCCL, its sockets
        (True, pytest.approx(0.44 / 1.7)),
        (False, pytest.approx(0.44 / 0.40)),
        (True, pytest.approx(0.3)),  # uneven
        (True, pytest.approx(0.46 / 0.4)),  # FSDP2
        (True, pytest.approx(1.0)),  # held in backward
        (True, 0.99),  # beside
    ]


def test_what_was_not_measured_is_not_held():
    found = bars.bars([], seconds=480, seconds_max=470)
    assert [bar.held for bar in found] == [False] + [None] * (len(found) - 1)


def test_the_time_of_more_computing_than_traffic_is_the_ideal():
    slow = {**steps_of("fsdp", plan.BRAID, 1.01), "computing_seconds": 1.0}
    (bar,) = [bar for bar in bars.bars([slow], 1, 2) if bar.name.startswith("FSDP2")]
    assert bar.value == pytest.approx(1.0)


def recorded_report(**changes) -> dict:
    machine = dict.fromkeys((*report._FACTS, "card", "braid", "mps"))
    machine |= {"cores": 16, "kernel": "6.18", "card": "NVIDIA H100 80GB HBM3", "driver": "580.1", "mps": True}
    steps = [
        {"network": "", "system": "", "test": "probe", "limit_s": 60.0, "seconds": 9.0, "outcome": course.DONE},
        {"network": plan.CAPPED, "system": plan.GLOO, "test": "ddp", "limit_s": 60.0, "seconds": 60.0,
         "outcome": "failed: waited 60 s\n| for an answer"},
    ]  # fmt: skip
    return {"date": "2026-11-28", "is_rehearsal": False, "machine": machine, "has_namespaces": True, "steps": steps,
            "versions": {"torch": "2.11.0", "NCCL": "2.28.9"}, "rows": RECORDED,
            "bars": [bar.as_json() for bar in bars.bars(RECORDED, 400, 470)], **changes}  # fmt: skip


def test_a_report_becomes_a_page(tmp_path):
    file = tmp_path / "report.json"
    file.write_text(json.dumps(recorded_report()))
    done = ran([GPU, "table", file])
    assert done.returncode == 0, done.stderr
    heading, *lines = done.stdout.splitlines()
    assert "2026-11-28: NVIDIA H100 80GB HBM3, driver 580.1, MPS, 16 cores" in heading and "NCCL 2.28.9" in heading
    assert "| DDP: step ÷ that of NCCL with 2 × 8 sockets | ≤ 1.05 | 1.10 | **no** |" in lines
    assert "| DDP | NIC 2 Gbit/s, flows 0.5: NCCL, 2 × 8 sockets | 400 | 200 | 400 | 100 |" in lines
    assert "| 65536 KiB | 50.0 | 40.0 | 80.0 | 1.50 |" in lines
    assert "| capped gloo ddp | 60 | failed: waited 60 s / for an answer |" in lines
    # A row of a table has as many cells as its heading.
    widths = [line.count("|") if line.startswith("|") else 0 for line in lines]
    assert all(one == other for one, other in zip(widths, widths[1:], strict=False) if one and other)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"has_namespaces": False}, "loopback"),
        ({"has_namespaces": None}, "no cluster was made"),
        ({"is_rehearsal": True}, "say nothing about a GPU"),
    ],
)
def test_a_report_says_how_little_it_is_worth(changes, said):
    assert said in report.lines(recorded_report(**changes))[0]


def test_a_file_that_is_no_report_is_refused(tmp_path):
    file = tmp_path / "report.json"
    for text in ("", "[]", '{"date": 1}'):
        file.write_text(text)
        done = ran([GPU, "table", file])
        assert done.returncode == 2 and "is no report.json" in done.stderr, text


@pytest.mark.parametrize(
    "line", ["", "run --seconds 5", "run --seconds much", "bundle", "measure", "rehearse --build /no/such"]
)
def test_bad_arguments_are_told(line, capsys):
    with pytest.raises(SystemExit) as end:
        main.main(line.split())
    assert end.value.code == 2 and "usage" in capsys.readouterr().err


def copy_event(name: str, nbytes: int, microseconds: float, kind: str = "gpu_memcpy") -> dict:
    return {"cat": kind, "name": f"Memcpy {name} (Device -> Pinned)", "dur": microseconds, "args": {"bytes": nbytes}}


def test_rates_of_copies_are_those_of_the_large_ones():
    events = [
        {"name": "process_name", "ph": "M"},
        copy_event("DtoH", 10 << 20, 100.0),
        copy_event("DtoH", 10 << 20, 300.0),
        copy_event("DtoH", 4096, 1000.0),
        copy_event("HtoD", 1 << 20, 50.0, kind="kernel"),
    ]
    found = figures.copy_rates(events)
    assert found["to_host_gb_per_second"] == pytest.approx((20 << 20) / 400e-6 / 1e9) and found["to_host_copies"] == 2
    assert found["to_device_gb_per_second"] is None and found["to_device_copies"] == 0


def test_bytes_on_the_wire_are_those_of_the_formulas():
    assert figures.ddp_bytes(100, 2) == 100 and figures.ddp_bytes(100, 4) == 150
    assert figures.fsdp_bytes(100, 2) == 150
    assert plan.ON_A_GPU.gradient_bytes == pytest.approx(100e6, rel=0.01)


def test_iterations_fill_the_time_within_bounds():
    assert [figures.iterations_for(each, 4.0, 20) for each in (0.0, 0.01, 1.0, 9.0)] == [20, 20, 4, 2]


def test_step_figures_are_those_of_the_slowest_rank():
    whole = [
        {"seconds": [1.0, 5.0, 2.0], "held": [0.1, 0.1, 0.1]},
        {"seconds": [2.0, 1.0, 3.0], "held": [0.2, 0.3, 0.1]},
    ]
    alone = [{"seconds": [0.5], "held": [0.5]}, {"seconds": [0.7], "held": [0.1]}]
    found = figures.step_row(whole, alone, 0.4)
    assert found == {"step_seconds": 3.0, "computing_seconds": 0.7, "wire_seconds": 0.4, "backward_held_seconds": 0.2}


class FakeCluster:
    """Starts, or not, and ends with a complaint, or not."""

    refused: dict[str | None, Exception] = {}
    complaint: str | None = None

    def __init__(self, shape, _braid, may_be_loopback):
        self.state = type("State", (), {"mode": NAMESPACES if shape.nic_mbit else LOOPBACK})
        assert may_be_loopback
        if shape.flow_mbit in self.refused:
            raise self.refused[shape.flow_mbit]

    def end(self):
        return self.complaint


class FakeMeasurement:
    """`acts`: by system and test what is done instead of measuring."""

    acts: dict = {}
    closed: list = []

    def __init__(self, _cluster, network, system, _braid, _workload):
        self.network, self.system, self.versions, self.needs_start = network, system, {system: "1"}, True

    def start(self, deadline):
        rows = self.take("start", deadline)
        self.needs_start = False
        return rows

    def take(self, test, deadline):
        self.acts.get((self.system, test), lambda _: None)(deadline)
        return [{"test": test, "network": self.network.name, "system": self.system}]

    def close(self, _grace_s):
        self.needs_start = True
        self.closed.append(self.system)


@pytest.fixture
def taken(monkeypatch):
    """Runs steps on systems and clusters that fail where they are told to: what each outcome is, and the rows."""
    monkeypatch.setattr(course, "Cluster", FakeCluster)
    monkeypatch.setattr(course, "Measurement", FakeMeasurement)
    monkeypatch.setattr(FakeMeasurement, "closed", [])
    kept: list[dict] = []

    def run(steps, seconds=100.0, acts=None, refused=None, complaint=None):
        kept.clear()
        monkeypatch.setattr(FakeMeasurement, "acts", acts or {})
        monkeypatch.setattr(FakeCluster, "refused", refused or {})
        monkeypatch.setattr(FakeCluster, "complaint", complaint)
        one = course.Course(seconds, None, plan.REHEARSED, lambda _: None, kept.append)
        one.run(steps)
        assert kept == one.rows
        return one, {str(outcome.step): outcome.text for outcome in one.outcomes}

    return run


def fails(text: str):
    def act(_deadline):
        raise SystemFailed(text)

    return act


STEPS = [
    plan.Step(plan.OPEN, plan.BRAID, "rates", 30),
    plan.Step(plan.OPEN, plan.BRAID, "ddp", 30),
    plan.Step(plan.CAPPED, plan.GLOO, "rates", 30),
]


def test_steps_are_taken_in_their_order(taken):
    run, outcomes = taken(STEPS)
    starts, tests = ("open braid start", "capped gloo start"), [str(step) for step in STEPS]
    assert list(outcomes) == [starts[0], *tests[:2], starts[1], tests[2]]
    assert set(outcomes.values()) == {course.DONE} and len(run.rows) == 5
    assert run.versions == {"braid": "1", "gloo": "1"} and run.has_namespaces is True


def test_a_step_that_fails_costs_no_other(taken):
    _, outcomes = taken(STEPS, acts={(plan.BRAID, "rates"): fails("waited 30 s")})
    assert outcomes["open braid rates"] == "failed: waited 30 s"
    # Its workers are not asked again.
    assert FakeMeasurement.closed[0] == plan.BRAID
    assert [text for name, text in outcomes.items() if name != "open braid rates"] == [course.DONE] * 4


def test_a_mistake_in_a_test_costs_no_other(taken):
    _, outcomes = taken(STEPS, acts={(plan.BRAID, "ddp"): lambda _: {}["digest"]})
    assert outcomes["open braid ddp"] == "failed: KeyError('digest')" and outcomes["capped gloo rates"] == course.DONE


def test_a_system_that_does_not_start_is_not_tried_again(taken):
    _, outcomes = taken(STEPS, acts={(plan.BRAID, "start"): fails("a process has ended")})
    assert outcomes["open braid start"] == "failed: a process has ended"
    assert outcomes["open braid rates"] == outcomes["open braid ddp"] == "not run: it did not start"
    assert outcomes["capped gloo rates"] == course.DONE


@pytest.mark.parametrize("error", [RunFailed("no namespaces"), ClusterError("no namespaces"), OSError("no namespaces")])
def test_a_network_that_cannot_be_made_is_left_out(taken, error):
    run, outcomes = taken(STEPS, refused={"500": error})
    assert outcomes["capped cluster"] == "failed: no namespaces"
    assert outcomes["capped gloo rates"] == "not run: no cluster" and outcomes["open braid ddp"] == course.DONE
    assert run.has_namespaces is False


def test_daemons_that_end_badly_are_told(taken):
    _, outcomes = taken(STEPS[:1], complaint="scripts/cluster: exit code 70")
    assert outcomes["open cluster"] == "failed: scripts/cluster: exit code 70"


def test_a_step_has_its_own_limit_and_what_is_left_of_the_run(taken):
    limits = []
    acts = {(plan.BRAID, test): lambda deadline: limits.append(deadline.seconds) for test in ("rates", "ddp")}
    _, outcomes = taken(STEPS[:2], seconds=20.0, acts=acts)
    assert set(outcomes.values()) == {course.DONE}
    assert all(0 < limit <= 20.0 - course._RESERVE_S for limit in limits)
    short = [plan.Step(plan.OPEN, plan.BRAID, "rates", 7.0)]
    taken(short, acts=acts)
    assert limits[-1] == 7.0


def test_what_there_is_no_time_for_is_told(taken):
    _, outcomes = taken(STEPS, seconds=course._RESERVE_S + course._STEP_SECONDS_MIN - 1)
    assert outcomes == {str(step): "no time left" for step in STEPS}
