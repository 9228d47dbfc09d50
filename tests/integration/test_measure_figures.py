# SPDX-License-Identifier: Apache-2.0
"""What the commands of bench/ make of what they have measured."""

import collections
import types

import bench_tools  # noqa: F401
import pytest
from measure import cpu, group
from measure.compare import figures
from measure.compare.cases import Case
from measure.compare.figures import Sample
from measure.scale import figures as scale_figures
from measure.scale import point, probe
from measure.training import figures as training_figures
from measure.training import step_figures
from measure.training.systems import parse

SHAPE = figures.Shape(4, 2, iterations=10, nic_gbit_per_second=2.0, wire_gbit_per_second=1.75)


@pytest.mark.parametrize(
    ("collective", "one_rank_per_node", "two"),
    [
        ("all_reduce", 6000, 6000), ("reduce_scatter", 3000, 3000), ("all_gather", 3000, 3000),
        ("broadcast", 3000, 3000), ("all_to_all", 3000, 6000), ("gather", 750, 750), ("scatter", 750, 750),
    ],
)  # fmt: skip
def test_what_must_cross_the_network(collective, one_rank_per_node, two):
    case = Case(1000, collective)
    assert [case.least_bytes_sent(4, ranks) for ranks in (1, 2)] == [one_rank_per_node, two]


def test_figures_follow_their_definitions():
    assert group.slowest([{"s": [1, 5, 2]}, {"s": [3, 4, 1]}], "s") == [3, 5, 2]
    assert figures.p99([5, 1, 3]) == 5
    assert figures.p99(list(range(1, 101))) == 99
    assert figures.bus_gbit_per_second(Case(1_000_000_000), 2, 8) == 1
    assert figures.bus_gbit_per_second(Case(1_000_000_000), 1, 8) == 0
    assert figures.bus_gbit_per_second(Case(1_000_000_000, "gather"), 2, 8) == 0.5
    assert figures.bus_gbit_per_second(Case(1_000_000_000, "broadcast"), 2, 8) == 1
    row = figures.row("gloo", Case(1_000_000), [Sample(0.5, 1, 4), Sample(0.1, 2, 8, 12), Sample(0.2, 3, 2)], SHAPE)
    assert (row["median_seconds"], row["p99_seconds"]) == (0.2, 2)
    assert row["bus_gbit_per_second"] == pytest.approx(2 * 7 / 8 * 8e6 / 0.2 / 1e9)
    assert row["line_fraction"] == pytest.approx(row["bus_gbit_per_second"] / 1.75)
    assert row["nic_fraction"] == pytest.approx(row["bus_gbit_per_second"] / 2)
    # 4 s on 4 nodes for 10 times a megabyte
    assert row["cpu_seconds_per_gigabyte"] == pytest.approx(100)
    assert row["machine_seconds_per_gigabyte"] == pytest.approx(300)  # of the repeats that tell


def test_the_machine_is_busy_as_far_as_no_processor_is_unused(monkeypatch):
    now, unused = [100.0], [3000.0]
    monkeypatch.setattr(cpu, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(cpu, "_unused_seconds", lambda: unused[0])
    monkeypatch.setattr(cpu.os, "cpu_count", lambda: 4)
    machine = cpu.Machine()
    now[0] += 0.4
    assert machine.busy_seconds() is None  # too early
    now[0] += 1.6
    unused[0] += 5
    assert machine.busy_seconds() == pytest.approx(4 * 2 - 5)
    unused[0] += 10  # the kernel counts in hundredths of a second
    assert machine.busy_seconds() == 0


def compared(**seconds: float) -> list[dict]:
    return [figures.row(name, Case(1000), [Sample(s, s, s)], SHAPE) for name, s in seconds.items()]


def test_braid_is_compared_with_the_fastest_peer():
    case = {"bytes": 1000, "collective": "all_reduce", "dtype": "float32"}
    assert figures.comparisons(compared(braid=1.0, gloo=4.0, openmpi=2.0)) == [
        {**case, "best_peer": "openmpi", "braid_to_best_peer": 0.5, "braid_to_before": None}
    ]
    before = figures.comparisons(compared(**{"braid": 1.0, "braid-before": 0.8}))
    assert before == [{**case, "best_peer": None, "braid_to_best_peer": None, "braid_to_before": 1.25}]
    assert figures.comparisons(compared(gloo=4.0, openmpi=2.0)) == []
    assert figures.comparisons(compared(braid=4.0)) == []


def rank(losses, right, digest, late=0.0):
    blocks = training_figures.block_sizes(len(losses))
    return {
        "losses": list(losses),
        "step_seconds": [1.0 + late] * len(losses),
        "synchronous_seconds": [0.75 + late] * len(blocks),
        "local_seconds": [0.5] * len(blocks),
        "bytes_sent": [100 * size for size in blocks],
        "right": right,
        "test_pictures": 10,
        "digest": digest,
    }


def trained(losses=(1.0,) * 12, right=(3, 4), seed=1, target=75, digests=("same", "same")):
    ranks = [rank(losses, [[5, 2], [12, right[i]]], digests[i], late=i) for i in range(2)]
    return training_figures.of_seed(seed, ranks, 1, target)


def test_the_slowest_rank_counts_and_ranks_add_up():
    one = trained(target=70)
    assert one["accuracy"] == 70 and one["loss"] == 1 and one["ranks_agree"]
    assert one["step_seconds"] == [2.0] * 12 and one["communication_seconds"] == [1.25] * 3
    assert one["bytes_per_step"] == [100.0] * 3
    assert (one["target_steps"], one["target_seconds"]) == (12, 24.0)
    assert trained(target=71)["target_seconds"] is None


def judged(*trainings, errors=(), right=(3, 4)):
    of_system = {parse("gloo"): [trained(right=right)], parse("od-sgd"): list(trainings)}
    return training_figures.rows(of_system, dict.fromkeys(errors, "it broke"), 2.0)[1]


def test_outcomes():
    assert judged(trained(), trained(seed=2))["outcome"] == "trains"
    assert judged(trained(losses=[1.0] * 11 + [float("inf")]))["outcome"] == "diverged"
    assert judged(trained(losses=(1.0,) + (2.0,) * 11))["outcome"] == "diverged"
    assert judged(trained(), right=(4, 4))["outcome"] == "worse"
    assert judged(trained(digests=("one", "other")))["outcome"] == "ranks differ"
    assert judged(trained(), errors=["od-sgd"])["outcome"] == judged()["outcome"] == "failed"


def test_the_target_counts_if_all_seeds_reach_it():
    row = judged(trained(target=70), trained(seed=2, target=20))
    assert (row["target_seconds"], row["target_steps"], row["target_reached"]) == (17.0, 8.5, 2)
    row = judged(trained(target=70), trained(seed=2, target=80))
    assert (row["target_seconds"], row["target_steps"], row["target_reached"]) == (None, None, 1)


def test_the_course_of_a_training():
    seeds = [trained(losses=[4.0] * 10 + [1.0] * 10), trained(losses=[2.0] * 20, seed=2)]
    rows = [{"system": "braid", "seeds": seeds}, {"system": "gloo", "seeds": []}]
    assert training_figures.courses(rows) == {
        "braid": [{"steps": 10, "seconds": 20.0, "loss": 3.0}, {"steps": 20, "seconds": 40.0, "loss": 1.5}]
    }
    diverged = trained(losses=[4.0] * 19 + [float("nan")])
    course = training_figures.courses([{"system": "braid", "seeds": [diverged]}])["braid"]
    assert [point["steps"] for point in course] == [10]


@pytest.mark.parametrize(
    ("text", "bytes_of_an_element"),
    [
        ("braid", 8), ("sharded", 8), ("sharded:pull=bf16", 6), ("od-sgd", 8), ("od-sgd:pull=bf16", 6),
        ("acco", 8), ("acco:pull=bf16", 6),
        ("ssd-sgd:pull_every=5", 4.8), ("cd-sgd:threshold=1", 5), ("cd-sgd:threshold=1,pull=bf16", 3),
        ("cd-sgd:threshold=1,correction_every=1", 8), ("diloco:20", 0.4), ("local-sgd:4", 2),
    ],
)  # fmt: skip
def test_bytes_by_formula(text, bytes_of_an_element):
    sent = step_figures.bytes_by_formula(parse(text), parameters=1000, nodes=4)
    assert sent == pytest.approx(750 * bytes_of_an_element)


def turn(step_seconds, bytes_per_step):
    names = ("pass_seconds", "trainer_cpu_seconds", "daemon_cpu_seconds")
    common = {**dict.fromkeys(names, 0.1), "bytes_per_step": bytes_per_step, "parameters": 1000}
    return step_figures.of_turn([{"step_seconds": seconds, **common} for seconds in (step_seconds / 2, step_seconds)])


def rows_of_steps(compute_seconds=1.0):
    turns = {
        parse("braid"): [turn(2.0, 6000)] * 3,
        parse("od-sgd"): [turn(1.1, 6000)] * 2 + [turn(9.0, 6000)],
        parse("cd-sgd:threshold=1"): [turn(1.0, 3750)],
        parse("sharded"): [],
    }
    return step_figures.rows(turns, compute_seconds, communication_seconds=1.0, nodes=4)


def test_a_step_is_compared_with_that_of_braid_and_with_what_could_be_hidden():
    plain, delayed, narrow = rows_of_steps()
    assert (plain["to_first"], plain["hidden"], plain["to_formula"]) == (1, 0, 1)
    assert delayed["step_seconds"] == 1.1 and delayed["to_first"] == pytest.approx(0.55)
    assert delayed["hidden"] == pytest.approx(0.9) and delayed["to_longest"] == pytest.approx(1.1)
    # Its communication is shorter by as much as it sends less.
    assert narrow["hidden"] == pytest.approx(1) and narrow["to_longest"] == 1 and narrow["to_formula"] == 1


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


# 10 bytes a second of heartbeats; then one operation of 76 bytes; then two reports of 1000 bytes, and one round of 500.
COURSE = scale_figures.Course(
    met_seconds=10,
    base=snapshot(0, 0, 0),
    formed=snapshot(10, 300, 300, messages_sent=9, messages_received=9),
    idle=snapshot(20, 400, 400, messages_sent=9, messages_received=9),
    registered=snapshot(20, 400, 400, messages_sent=9, messages_received=9),
    operated=snapshot(21, 486, 410, messages_sent=10, messages_received=9, operations=1),
    stepped=snapshot(31, 2586, 1010, messages_sent=23, messages_received=21, operations=11),
)


def test_heartbeats_are_no_operations():
    node = scale_figures.of_node(point.Point(4), COURSE)
    assert node["idle_bytes_per_second"] == 10 and node["idle_packets_per_second"] == 1
    assert node["idle_cpu_share"] == pytest.approx(0.1)
    assert node["formation_bytes_sent"] == 300 and node["formation_messages_sent"] == 9
    assert node["operation_bytes"] == 76 and node["operation_messages"] == 1


def test_plans_are_told_from_the_nodes_that_are_no_neighbours_of_the_coordinator():
    addresses = [f"10.0.0.{n}" for n in range(1, 5)]
    found = scale_figures.plan_traffic([COURSE] * 4, addresses)
    assert found == {"plan_reports": 2, "plan_rounds": 1, "plan_report_bytes": 1000, "plan_round_bytes": 500}
    assert set(scale_figures.plan_traffic([COURSE] * 3, addresses[:3]).values()) == {None}
