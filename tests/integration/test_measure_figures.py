# SPDX-License-Identifier: Apache-2.0
"""What the commands of bench/ make of what they have measured."""

import collections
import os
import time
import types

import bench_tools  # noqa: F401
import pytest
from measure import cpu, group, table
from measure.compare import figures, network, wire
from measure.compare.cases import Case
from measure.compare.figures import Sample
from measure.errors import SystemFailed
from measure.scale import figures as scale_figures
from measure.scale import point, probe
from measure.training import figures as training_figures
from measure.training import step_figures, stepping
from measure.training.systems import parse
from measure.training.train import columns

SHAPE = figures.Shape(4, 2, iterations=10, nic_gbit_per_second=2.0, wire_gbit_per_second=1.75)


def test_a_system_that_finds_another_way_than_the_network_has_failed():
    nodes = [object()] * 4  # only how many they are counts
    network.expect_used(nodes, 1, Case(1000), iterations=10, sent=61_000)
    network.expect_used(nodes[:1], 1, Case(1000), iterations=10, sent=0)  # one node sends nothing
    with pytest.raises(SystemFailed, match="sent 40000 bytes .* need 60000"):
        network.expect_used(nodes, 1, Case(1000), iterations=10, sent=40_000)


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


def test_ranks_share_the_elements_of_a_case_equally():
    assert Case(1000).elements(4) == 252 and Case(24_000_000, dtype="bfloat16").elements(4) == 12_000_000
    assert Case(4, dtype="float64").elements(8) == 8


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


def test_without_a_wire_there_is_no_fraction_of_it():
    row = figures.row("gloo", Case(1000), [Sample(1, 1, 1)], figures.Shape(1, 2, iterations=1))
    assert row["line_fraction"] is None and row["nic_fraction"] is None


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


def test_the_kernel_tells_how_long_processors_were_unused():
    assert 0 <= cpu._unused_seconds() <= (os.cpu_count() or 1) * time.clock_gettime(time.CLOCK_BOOTTIME) + 1


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


def test_every_row_is_compared_with_gloo_and_with_the_braid_before():
    case, other = Case(1000, "gather", "bfloat16"), Case(1000, "gather")
    samples = {("braid", case): 1.0, ("gloo", case): 4.0, ("braid-before", case): 2.0, ("braid", other): 3.0}
    made = figures.rows({key: [Sample(s, s, s)] for key, s in samples.items()} | {("gloo", other): []}, SHAPE)
    assert [(row["to_gloo"], row["to_before"]) for row in made] == [(0.25, 0.5), (1, 2), (0.5, 1), (None, None)]
    assert (made[0]["collective"], made[0]["dtype"], made[0]["bytes"]) == ("gather", "bfloat16", 1000)


def test_what_iperf3_says_is_understood():
    assert wire.parse('{"end": {"sum_received": {"bits_per_second": 2e9}}}') == 2.0
    with pytest.raises(ValueError, match="refused"):
        wire.parse('{"error": "refused"}')


def test_numbers_have_three_digits_times_and_sizes_units():
    assert [table.number_text(v) for v in (0, 0.00521, 1.9, 42.04, 1234.5)] == ["0", "0.00521", "1.90", "42.0", "1234"]
    assert [table.seconds_text(s) for s in (12.34e-6, 0.0123, 1.5)] == ["12.3 us", "12.30 ms", "1.500 s"]
    assert [table.bytes_text(b) for b in (1001, 10_000, 25_000_000)] == ["1001 B", "10 kB", "25 MB"]


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


def test_a_table_has_dashes_for_what_there_is_not():
    titles, *lines = table.lines(columns(95), [judged(), judged(trained(), trained())])
    assert "to 95 %" in titles and len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["od-sgd", *"-------", "failed"]
    assert lines[1].split("  ")[0] == "od-sgd" and "70.00 ± 0.00" in lines[1] and "2.000 s" in lines[1]


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


def test_of_real_computing_nobody_knows_what_could_be_hidden():
    rows = rows_of_steps(compute_seconds=None)
    assert [(row["hidden"], row["to_longest"]) for row in rows] == [(None, None)] * 3


def event(track, name, begin, end=None, **arguments):
    """An event of the node's process; times in microseconds."""
    times = {"ph": "i", "ts": begin} if end is None else {"ph": "X", "ts": begin, "dur": end - begin}
    return {"pid": 2, "tid": track, "name": name, "args": arguments, **times}


TRACKS = {1: "rank 0: trainer", 2: "operations", 3: "operations (2)", 4: "stream 0, I/O loop 0"}
EVENTS = [
    event(1, "step 7: backward", 0, 9), event(1, "layer1", 1.5), event(1, "layer0", 9),
    event(2, "layer1", 2, 30, bytes=8), event(2, "waits for other nodes", 2, 4), event(2, "barrier", 50, 51, bytes=0),
    event(3, "layer0", 9, 40.25, bytes=16), event(4, "layer1", 3, 30, bytes=8),
    {**event(2, "of another node", 1, 2, bytes=8), "pid": 1},
]  # fmt: skip


def test_of_a_trace_that_is_read_which_is_of_rank_0s_gradients():
    names = [(2, track, name) for track, name in TRACKS.items()] + [(1, 1, "rank 1: trainer"), (1, 2, "operations")]
    meta = [
        {"ph": "M", "name": "thread_name", "pid": process, "tid": track, "args": {"name": name}}
        for process, track, name in names
    ]
    seen = stepping.read_trace({"traceEvents": [*meta, *EVENTS], "otherData": {"begin_ns": 1000}})
    assert seen["gradients"] == [2500, 10_000]
    assert seen["operations"] == [[3000, 31_000, 8], [10_000, 41_250, 16]]


def test_the_picture_begins_with_the_first_step_and_ends_with_the_last():
    benchmarks = pytest.importorskip("braid.plot.benchmarks", reason="matplotlib is not installed")
    ms = 10**6
    steps = [
        [["forward", at, at + 2 * ms], ["backward", at + 2 * ms, at + 5 * ms], ["step()", at + 5 * ms, at + 10 * ms]]
        for at in (100 * ms, 110 * ms)
    ]
    part = {
        "computing": steps,
        "gradients": [99 * ms, 103 * ms, 103 * ms + 1, 121 * ms],
        "operations": [[90 * ms, 99 * ms, 1], [95 * ms, 101 * ms, 1], [104 * ms, 109 * ms, 1], [119 * ms, 130 * ms, 1]],
    }
    timelines = {"sharded": part, "braid": {**part, "computing": steps[:1]}}
    page = benchmarks.timeline({"timelines": timelines, "options": {"nodes": 4}}, "")
    both, first = page.panels
    assert both.end == first.end == 20 and page.notes == ["4 nodes, rank 0"]

    def spans(name: str) -> list[tuple[float, float]]:
        return [(one.begin, one.end) for one in both.spans if one.name == name]

    assert spans("forward") == [(0, 2), (10, 12)] and spans("step()") == [(5, 10), (15, 20)]
    assert [begin for begin, _ in spans("gradient")] == [3]
    assert spans("group") == [(0, 1), (4, 9), (19, 20)]


def test_what_is_no_trace_is_refused(tmp_path):
    trace = tmp_path / "trace.json"
    trace.write_text('{"names": ["a", "b"], "numel": [640, 7]}')
    assert point.tensors_of(str(trace)) == {"names": ["b", "a"], "counts": [1, 10]}
    for text in ("[]", "{", '{"names": [], "numel": []}', '{"names": ["a"], "numel": [1, 2]}'):
        trace.write_text(text)
        with pytest.raises(SystemFailed, match="is no trace"):
            point.tensors_of(str(trace))


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
