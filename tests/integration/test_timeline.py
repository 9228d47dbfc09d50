# SPDX-License-Identifier: Apache-2.0
"""braidctl trace: what all nodes of a job did, on one clock; and the files of jobs that failed. On real daemons."""

import itertools
import json
import pathlib
import stat
from collections import defaultdict
from collections.abc import Iterator

import pytest
from braid_build import braidctl, ran
from real_cluster import PEERS_WAIT, Cluster, Node, Trainer, end_running, needs_daemons, until, wait_until_running

pytestmark = [needs_daemons, pytest.mark.sanitized]

_job_numbers = itertools.count(1)
# Steps as they are configured, around the ring, so that bytes can be counted.
PLAIN = (
    "tune.mode=off", "plan.planner=first", "collective.direct_bytes=0", "collective.two_hops_bytes=0",
    "collective.halving_bytes=0",
)  # fmt: skip
LAYERS = 4
COUNT = 300_000

# Steps for ever. A rank's `late` seconds lie before its first gradient.
TRAIN = """
import itertools

late = ARGUMENT.get("late", [0] * WORLD)[RANK]
job = open_job()
handles = job.register([TensorSpec(f"layer{i}", DType.FLOAT32, ARGUMENT["count"], backward_order=i, planned=True)
                        for i in range(ARGUMENT["layers"])])
stream = dynamic(job, "stream")
inputs = [np.ones(ARGUMENT["count"], np.float32) for _ in handles]
for step in itertools.count():
    time.sleep(late)
    tickets = [job.submit(handle, step, mine) for handle, mine in zip(handles, inputs)]
    tickets.append(job.submit(stream, step, np.ones(10, np.float32)))
    for ticket in tickets:
        ended(job, ticket)
    time.sleep(0.02)
    if step == 12:
        say("RUNNING")
    if step == ARGUMENT.get("fails_at") and RANK == 0:
        os._exit(1)
"""
# Sums of a dynamic tensor, as plain collectives are.
COLLECTIVES = """
import itertools

job = open_job()
stream = dynamic(job, "stream")
for step in itertools.count():
    ended(job, job.submit(stream, step, np.ones(1000, np.float32)))
    time.sleep(0.005)
    if step == 20:
        say("RUNNING")
"""


def trace(node: Node, *options: str) -> dict:
    done = braidctl(node.socket, "trace", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Timeline:
    """The spans of a trace by node and track; times in microseconds."""

    def __init__(self, document: dict):
        self.document = document
        events = document["traceEvents"]
        self.processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        self.spans: dict[tuple[str, str], list[dict]] = defaultdict(list)
        self.instants: dict[tuple[str, str], list[dict]] = defaultdict(list)
        for event in events:
            if event["ph"] not in "Xi":
                continue
            kind = self.spans if event["ph"] == "X" else self.instants
            kind[self.processes[event["pid"]], tracks[event["pid"], event["tid"]]].append(event)
            assert event["ts"] >= 0 and event.get("dur", 0) >= 0, event

    def of(self, node: str, track: str) -> list[dict]:
        """A node's spans, on all tracks whose name begins so."""
        return [
            span for (process, name), spans in self.spans.items()
            if process == f"node {node}" and name.startswith(track) for span in spans
        ]  # fmt: skip

    def errors_us(self) -> dict[str, float]:
        return {node["node"]: node["clock_error_ns"] / 1000 for node in self.document["otherData"]["nodes"]}


def by_step(spans: list[dict]) -> dict[int, list[dict]]:
    steps = defaultdict(list)
    for span in spans:
        if "step" in span["args"]:
            steps[span["args"]["step"]].append(span)
    return steps


def end_of(span: dict) -> float:
    return span["ts"] + span["dur"]


# What rounding to nanoseconds, and their printing, may add.
ROUNDING_US = 0.01


def expect_in_order(timeline: Timeline, node: str, rank: int) -> None:
    """Each step has gradients, then their operations, with their units inside."""
    submits = timeline.instants[f"node {node}", f"rank {rank}: trainer"]
    operations = [span for span in timeline.of(node, "operations") if "plan" in span["args"]]
    assert operations
    units = timeline.of(node, "stream") + timeline.of(node, "units without a stream")
    for step, of_step in by_step(operations).items():
        if step < timeline.document["otherData"]["first_step"]:
            continue  # only its last operation is there
        first = min(s["ts"] for s in submits if s["args"]["step"] == step and s["name"].startswith("layer"))
        assert all(first <= span["ts"] + ROUNDING_US for span in of_step)
    for unit in units:
        around = [
            span for span in timeline.of(node, "operations")
            if span["args"].get("step") == unit["args"]["step"] and span["name"].split()[0] == unit["name"]
        ]  # fmt: skip
        assert any(
            span["ts"] <= unit["ts"] + ROUNDING_US and end_of(unit) <= end_of(span) + ROUNDING_US for span in around
        ), (unit, around)


def expect_ring_bytes(timeline: Timeline, node: str, nodes: int) -> None:
    """Around the ring each node sends 2(n − 1)/n of what is reduced."""
    operations = [span for span in timeline.of(node, "operations") if "plan" in span["args"]]
    steps = by_step(operations)
    # The last operation of the step before the first one is there, but not all of its chunks.
    asked_for = {step: of for step, of in steps.items() if step >= timeline.document["otherData"]["first_step"]}
    complete = [step for step, of in asked_for.items() if sum(span["args"]["tensors"] for span in of) == LAYERS]
    assert len(complete) >= 3, steps
    chunks = [
        span for span in timeline.of(node, "flow")
        if span["name"].startswith("layer") and "resent" not in span["args"]
    ]  # fmt: skip
    # Acknowledgements of the latest step's may still be on their way.
    for step in complete[:-2]:
        sent = sum(span["args"]["bytes"] for span in chunks if span["args"]["step"] == step)
        assert sent == pytest.approx(2 * (nodes - 1) / nodes * LAYERS * COUNT * 4, rel=1e-3), step


def expect_aligned(timeline: Timeline) -> None:
    """No node has a step's results before every node has given its gradients."""
    errors = timeline.errors_us()
    nodes = list(errors)
    steps = {node: by_step([s for s in timeline.of(node, "operations") if "plan" in s["args"]]) for node in nodes}
    common = set.intersection(*(set(steps[node]) for node in nodes))
    assert common
    for one, other in itertools.permutations(nodes, 2):
        for step in common:
            for span in steps[one][step]:
                same = [s for s in steps[other][step] if s["name"] == span["name"]]
                slack = errors[one] + errors[other] + ROUNDING_US
                assert all(end_of(span) >= s["ts"] - slack for s in same), (one, other, step)


class Traced:
    """A job that trains until the end of its `with`."""

    def __init__(self, cluster: Cluster, argument: dict | None = None, source: str = TRAIN):
        self.name = f"traced-{next(_job_numbers)}"
        self.cluster = cluster
        argument = {"count": COUNT, "layers": LAYERS, **(argument or {})}
        self.trainers: list[Trainer] = cluster.start(source, argument=argument, job=self.name)

    def __enter__(self):
        wait_until_running(self.trainers)
        return self

    def __exit__(self, *_):
        end_running(self.trainers)


@pytest.mark.parametrize("nodes", [2, 4])
def test_all_nodes_on_one_clock(cluster_of, nodes):
    cluster = cluster_of(nodes, *PLAIN)
    names = [node.name for node in cluster.nodes]
    with Traced(cluster) as job:
        for asked in cluster.nodes[:2]:
            timeline = Timeline(trace(asked, "--job", job.name))
            told = timeline.document["otherData"]
            assert told["job"] == job.name and told["missing"] == [] and [n["node"] for n in told["nodes"]] == names
            assert sum(node["clock_error_ns"] == 0 for node in told["nodes"]) == 1, "the one that asked"
            for rank, node in enumerate(names):
                backward = timeline.of(node, f"rank {rank}: trainer")
                kinds = {span["name"].split(": ")[-1] for span in backward}
                assert kinds == {"backward", "waits for the network", "optimizer, input, forward"}
                assert len(by_step(backward)) >= 5
                expect_in_order(timeline, node, rank)
                expect_ring_bytes(timeline, node, nodes)
                assert any(s["name"] == "stream" for s in timeline.of(node, "operations")), "dynamic ones, too"
            expect_aligned(timeline)


@pytest.mark.plain
def test_a_late_rank_is_seen(cluster_of):
    cluster = cluster_of(2, *PLAIN)
    with Traced(cluster, {"late": [0, 0.2]}) as job:
        timeline = Timeline(trace(cluster.nodes[0], "--steps", "3"))
        assert timeline.document["otherData"]["job"] == job.name, "it is the only one"
        first, second = (node.name for node in cluster.nodes)
        forward = [s["dur"] for s in timeline.of(second, "rank 1: trainer") if s["name"].startswith("optimizer")]
        assert forward and min(forward) > 200_000
        waits = [s["dur"] for s in timeline.of(first, "operations") if s["name"] == "waits for other nodes"]
        assert max(waits) > 100_000


def test_collectives_without_steps(cluster_of):
    cluster = cluster_of(2, *PLAIN)
    with Traced(cluster, source=COLLECTIVES) as job:
        timeline = Timeline(trace(cluster.nodes[1], "--job", job.name, "--steps", "1"))
        for node in cluster.nodes:
            sums = [span for span in timeline.of(node.name, "operations") if span["name"] == "stream"]
            assert len(sums) >= 20 and all("plan" not in span["args"] for span in sums)
            assert not any("backward" in span["name"] for span in timeline.of(node.name, "rank"))
        expect_aligned_sums(timeline, [node.name for node in cluster.nodes])


def expect_aligned_sums(timeline: Timeline, nodes: list[str]) -> None:
    errors = timeline.errors_us()
    first, second = (
        {s["args"]["step"]: s for s in timeline.of(node, "operations") if "step" in s["args"]} for node in nodes
    )
    common = set(first) & set(second)
    assert common
    slack = sum(errors.values()) + ROUNDING_US
    for step in common:
        assert end_of(first[step]) >= second[step]["ts"] - slack and end_of(second[step]) >= first[step]["ts"] - slack


@pytest.fixture
def shifted() -> Iterator[Cluster]:
    """The second of three nodes has another monotonic clock: 1000 s ahead."""
    shift = ["unshare", "--time", "--monotonic", "1000"]
    tried = ran([*shift, "cat", "/proc/self/timens_offsets"])
    if tried.returncode != 0 or "1000" not in tried.stdout:
        pytest.skip(f"no time namespaces here: {tried.stderr.strip()}")
    with Cluster(3, PLAIN) as cluster:
        node = cluster.nodes[1]
        node.signal(9)
        cluster.wait_until_gone(node)
        node.daemon_command = [*shift, *node.daemon_command]
        node.restart()
        yield cluster


def test_clocks_that_differ_are_aligned(shifted):
    with Traced(shifted) as job:
        for asked in shifted.nodes:
            timeline = Timeline(trace(asked, "--job", job.name))
            nodes = timeline.document["otherData"]["nodes"]
            assert [node["node"] for node in nodes] == [node.name for node in shifted.nodes]
            for node, offset_s in zip(nodes, [0, 1000, 0], strict=True):
                assert abs(node["clock_offset_ns"] - offset_s * 10**9) <= node["clock_error_ns"], node
            spans = [span for track in timeline.spans.values() for span in track]
            assert max(map(end_of, spans)) < 900e6, "on one clock there are seconds, not 1000 of them"
            expect_aligned(timeline)


@pytest.mark.plain
def test_a_node_that_does_not_answer_is_named(cluster_of):
    cluster = cluster_of(3, *PLAIN, PEERS_WAIT)
    with Traced(cluster) as job:
        with cluster.nodes[2].stopped():
            done = braidctl(cluster.nodes[1].socket, "trace", "--job", job.name)
        assert done.returncode == 0 and f"no answer from {cluster.nodes[2].name}" in done.stderr, done.stderr
        assert json.loads(done.stdout)["otherData"]["missing"] == [cluster.nodes[2].name]


def test_it_is_written_to_a_file(cluster_of, tmp_path):
    cluster = cluster_of(2, *PLAIN)
    node = cluster.nodes[0]
    with Traced(cluster) as job:
        path = tmp_path / "steps.json"
        done = braidctl(node.socket, "trace", "--job", job.name, "-o", str(path))
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"{path}: 2 nodes, ") and "clocks aligned to" in done.stdout
        assert Timeline(json.loads(path.read_text())).spans
        done = braidctl(node.socket, "trace", "-o", str(tmp_path / "nowhere" / "steps.json"))
        assert done.returncode == 1 and "steps.json: cannot be written: No such file" in done.stderr


@pytest.mark.plain
def test_off(cluster_of):
    cluster = cluster_of(2, *PLAIN, "debug.timeline_events=0")
    with Traced(cluster) as job:
        done = braidctl(cluster.nodes[0].socket, "trace", "--job", job.name)
        assert done.returncode == 1 and "has answered" in done.stderr, done.stderr


def files_in(directory: pathlib.Path) -> list[pathlib.Path]:
    return sorted(directory.glob("*.json")) if directory.exists() else []


def test_a_job_that_fails_leaves_a_file_on_each_node(tmp_path):
    directory = tmp_path / "timelines"
    with Cluster(2, [*PLAIN, f"node.state_directory={tmp_path}"]) as cluster:
        cluster.expect_healthy()
        assert not files_in(directory), "who ends well leaves nothing"
        argument = {"count": 1000, "layers": LAYERS, "fails_at": 15}
        trainers = cluster.start(TRAIN, argument=argument, job="../hostile name")
        for trainer in trainers:
            trainer.process.wait()
        until(lambda: len(files_in(directory)) == 2, "both nodes have written theirs")
        for node, path in zip(cluster.nodes, files_in(directory), strict=True):
            assert path.name.startswith(f"_.._hostile_name-1-{node.name}-"), path
            assert stat.S_IMODE(path.stat().st_mode) & 0o177 == 0
            until(lambda node=node, path=path: str(path) in node.log(), "the log names it")
            timeline = Timeline(json.loads(path.read_text()))
            told = timeline.document["otherData"]
            assert told["job"] == "../hostile name" and "lost rank 0" in told["failure"], told
            assert by_step(timeline.of(node.name, "rank"))
        # The same job leaves one file a minute.
        for trainer in cluster.start(TRAIN, argument=argument, job="../hostile name"):
            trainer.process.wait()
        for node in cluster.nodes:
            until(lambda node=node: "no timeline is written" in node.log(), "it says why")
        assert len(files_in(directory)) == 2
