# SPDX-License-Identifier: Apache-2.0
"""braidctl explain names the true cause of slow steps: each test stages one on real daemons."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from braid_build import IS_SANITIZED, braidctl, ran, trainer_environment
from cluster_tool import CLUSTER
from real_cluster import Cluster, Node, Trainer, end_running, needs_daemons, until, wait_until_running
from second_rail import two_rail_cluster
from silent_network import connection_rules, dropped, skip_without_packet_filter
from test_flows import data_connections
from test_operations import metrics

pytestmark = [
    needs_daemons,
    pytest.mark.skipif(IS_SANITIZED, reason="what bounds the steps would be the sanitizer"),
]

_job_numbers = itertools.count(1)

# Steps for ever, of which backward and what comes before it are waiting: nodes share this machine's processors. What
# is a list has one value for each rank.
TRAIN = """
import itertools

def own(name, default=0):
    value = ARGUMENT.get(name, default)
    return value[RANK] if isinstance(value, list) else value

job = open_job()
counts = ARGUMENT["counts"]
handles = job.register([TensorSpec(f"layer{i}", DType.FLOAT32, c, backward_order=i, planned=True)
                        for i, c in enumerate(counts)])
inputs = [np.ones(c, np.float32) for c in counts]
for step in itertools.count():
    time.sleep(own("before") + (own("before_third") if step % 3 == 0 else 0))
    if step == own("not_finite_from", -1):
        inputs[-1][:] = np.nan
    tickets = []
    for handle, mine in zip(handles, inputs):
        time.sleep(own("backward") / len(handles))
        tickets.append(job.submit(handle, step, mine))
    for ticket in tickets:
        ended(job, ticket)
    if step == 12:
        say("RUNNING")
"""
SMALL = [1000, 1000, 1000, 1000]
# 8 MB: 160 ms and more of a network of 400 Mbit/s.
LARGE = [500_000, 500_000, 500_000, 500_000]
QUIET = {"counts": SMALL, "before": 0.08, "backward": 0.12}
QUIET_DAEMONS = ("tune.mode=off",)
NIC_MBIT = 400
# What a test waits for with: explain looks for as long.
LOOK_S = 0.5


def explain(node: Node, job: str, *options: str) -> dict:
    done = braidctl(node.socket, "explain", "--job", job, "--seconds", str(LOOK_S), "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def causes(explanation: dict) -> list[str]:
    return [finding["cause"] for finding in explanation["findings"]]


class Staged:
    """A job that trains until the end of its `with`."""

    def __init__(self, cluster: Cluster, argument: dict, source: str = TRAIN):
        self.name = f"explained-{next(_job_numbers)}"
        self.cluster = cluster
        self.trainers: list[Trainer] = cluster.start(source, argument=argument, job=self.name)

    def __enter__(self):
        wait_until_running(self.trainers)
        return self

    def __exit__(self, *_):
        end_running(self.trainers)

    def explain(self, node: int = 0) -> dict:
        return explain(self.cluster.nodes[node], self.name)

    def until_first(self, cause: str, is_right: Callable[[dict], bool] = lambda finding: True) -> dict:
        """Until the first finding is this cause, which is_right says to be the one that was staged."""
        return self._until(cause, is_right, lambda findings: findings[:1])

    def until_found(self, cause: str, is_right: Callable[[dict], bool] = lambda finding: True) -> dict:
        """The same where something else may cost more."""
        return self._until(cause, is_right, lambda findings: findings)

    def _until(self, cause: str, is_right: Callable[[dict], bool], those: Callable[[list], list]) -> dict:
        seen: list[dict] = []
        found: list[dict] = []

        def is_found() -> bool:
            seen.append(self.explain(len(seen) % len(self.cluster.nodes)))
            found[:] = [one for one in those(seen[-1]["findings"]) if one["cause"] == cause and is_right(one)]
            return bool(found)

        try:
            until(is_found, f"{cause} is found")
        except AssertionError:
            raise AssertionError(f"{cause} was staged, but this was found: {seen[-1]}") from None
        return found[0]


def set_nic(cluster: Cluster, mbit: int) -> None:
    subprocess.run([CLUSTER, "--set-caps", cluster.directory, "--nic-mbit", str(mbit)], check=True)


@pytest.fixture(scope="module")
def slow_network() -> Iterator[Cluster]:
    with Cluster(3, QUIET_DAEMONS) as cluster:
        set_nic(cluster, NIC_MBIT)
        yield cluster


def test_compute_bound(cluster_of):
    with Staged(cluster_of(3, *QUIET_DAEMONS), QUIET) as job:
        finding = job.until_first("compute")
        assert "communication is hidden" in finding["text"]


def test_a_slow_rank_is_named_on_every_node(cluster_of):
    with Staged(cluster_of(3, *QUIET_DAEMONS), {**QUIET, "backward": [0.12, 0.12, 0.36]}) as job:
        for node in range(3):
            finding = job.until_first("late_rank")
            assert finding["rank"] == 2 and finding["node"] == job.cluster.nodes[2].name, (node, finding)
        assert "its backward pass takes" in finding["text"]


def test_a_rank_that_is_slow_in_one_step_of_three_is_named(cluster_of):
    with Staged(cluster_of(3, *QUIET_DAEMONS), {**QUIET, "before_third": [0, 0.6, 0]}) as job:
        finding = job.until_first("late_rank")
        assert finding["rank"] == 1 and " steps: its first gradient comes" in finding["text"], finding


# As FSDP and hand-written loops do it: a stream of collectives, of which nobody knows where a step ends.
STREAM = """
job = open_job()
handle = dynamic(job)
ones = np.ones(1000, np.float32)
for step in itertools.count():
    if step % 4 == 0:
        time.sleep(ARGUMENT["pause"][RANK])
    ended(job, job.submit(handle, step, ones))
    if step == 40:
        say("RUNNING")
"""


def test_without_planned_tensors_who_submits_last_is_named(cluster_of):
    argument = {"pause": [0.05, 0.05, 0.2]}
    with Staged(cluster_of(3, *QUIET_DAEMONS), argument, source="import itertools\n" + STREAM) as job:
        finding = job.until_first("late_rank")
        assert finding["rank"] == 2 and finding["node"] == job.cluster.nodes[2].name, finding
        assert "operations after the others" in finding["text"]
        explained = job.explain()
        assert explained["steps"] == 0 and explained["operations"] >= 16
        shown = braidctl(job.cluster.nodes[0].socket, "explain", "--job", job.name, "--seconds", "0.1").stdout
        assert "its steps are not known" in shown and "Rank 2 on" in shown, shown


def test_a_rank_that_begins_late_is_named(cluster_of):
    with Staged(cluster_of(3, *QUIET_DAEMONS), {**QUIET, "before": [0.08, 0.4, 0.08]}) as job:
        finding = job.until_first("late_rank")
        assert finding["rank"] == 1 and "its first gradient comes" in finding["text"]


def test_trainers_that_wait_for_their_input(cluster_of):
    with Staged(cluster_of(3, *QUIET_DAEMONS), {**QUIET, "before": 0.4, "backward": 0.05}) as job:
        assert "wait for their input" in job.until_first("before_backward")["text"]


def test_a_rank_whose_gradients_are_not_finite(cluster_of):
    with Staged(cluster_of(3, *QUIET_DAEMONS), {**QUIET, "not_finite_from": [-1, 5, -1]}) as job:
        finding = job.until_first("not_finite")
        assert finding["rank"] == 1
        assert "'layer3' in step 5" in finding["text"]


def test_a_network_that_is_full(slow_network):
    with Staged(slow_network, {"counts": LARGE, "before": 0.02, "backward": 0.02}) as job:
        text = job.until_first("network", lambda finding: "sends" in finding["text"])["text"]
        assert "Gbit/s that its flows deliver" in text


def test_a_rail_that_is_slower_than_those_of_other_nodes(slow_network):
    node = slow_network.nodes[1]
    try:
        # As scripts/cluster shapes the NIC.
        shaper = f"tc class change dev {node.interface} parent 1: classid 1:1 htb rate 80mbit burst 30000 cburst 30000"
        node.run(*shaper.split())
        with Staged(slow_network, {"counts": LARGE, "before": 0.02, "backward": 0.02}) as job:
            finding = job.until_first("slow_rail")
            assert finding["node"] == node.name
    finally:
        set_nic(slow_network, NIC_MBIT)


def test_a_flow_that_is_slow():
    """By the hash of its ports each flow is one of the slow ones, or not."""
    with Cluster(3, [*QUIET_DAEMONS, "transport.flows_per_link=12", "debug.slow_flow_percent=0"]) as cluster:
        caps = [CLUSTER, "--set-caps", cluster.directory, "--flow-mbit", "40,40,40,40,40,40,40,4"]
        subprocess.run(caps, check=True)
        with Staged(cluster, {"counts": LARGE, "before": 0.02, "backward": 0.02}) as job:
            finding = job.until_found("slow_flow")
            assert "most of its siblings" in finding["text"]


def test_a_rail_that_is_down():
    with two_rail_cluster(*QUIET_DAEMONS) as cluster:
        first, second = cluster.nodes
        with Staged(cluster, {"counts": LARGE, "before": 0.08, "backward": 0.1}) as job:
            first.run("ip", "link", "set", "eth1", "down")
            for node in (first, second):  # Its peer has no carrier either.
                finding = job.until_found("rail_down", lambda one, node=node: one["node"] == node.name)
                assert "Rail eth1 of" in finding["text"] and "1 of 2 rails" in finding["text"]
            first.run("ip", "link", "set", "eth1", "up")
            until(lambda: "rail_down" not in causes(job.explain()), "it is there again")


def test_jobs_that_compete(slow_network):
    argument = {"counts": LARGE, "before": 0.02, "backward": 0.02}
    with Staged(slow_network, argument) as job, Staged(slow_network, argument):
        assert "share the rails of" in job.until_first("competing_jobs")["text"]


def test_a_flow_that_gives_no_answer(cluster_of):
    # With two nodes each flow carries something.
    cluster = cluster_of(2, *QUIET_DAEMONS, "transport.flows_per_link=4")
    node = cluster.nodes[1]
    skip_without_packet_filter(node)
    with Staged(cluster, {"counts": LARGE, "before": 0.08, "backward": 0.1}) as job:
        with dropped(node, *connection_rules(data_connections(node)[1], "both")):
            until(lambda: "lost_flow" in causes(job.explain()), "the flow is given up, and named")
        found = [one for one in job.explain()["findings"] if one["cause"] == "lost_flow"]
        assert any("nothing acknowledged for" in one["text"] for one in found), found


def test_small_messages():
    """Nodes far apart, and next to nothing to send."""
    with Cluster(3, QUIET_DAEMONS, delay_ms=15) as cluster:
        with Staged(cluster, {"counts": [500], "before": 0.02, "backward": 0.02}) as job:
            assert "round trips, not bytes" in job.until_first("small_messages")["text"]


def test_a_plan_that_is_fixed_and_hides_little():
    """The plan that every set begins with keeps three of four layers together, and nothing may replace it."""
    with Cluster(3, [*QUIET_DAEMONS, "plan.planner=first"]) as cluster:
        set_nic(cluster, NIC_MBIT)
        with Staged(cluster, {"counts": LARGE, "before": 0.02, "backward": 0.24}) as job:
            finding = job.until_first("plan")
            assert "Plan 0 (planner first, 2 groups)" in finding["text"]
            assert "plan.planner to streams" in finding["advice"]


@contextlib.contextmanager
def starved(node: Node, hogs: int = 6) -> Iterator[None]:
    """The node's daemon has a processor that it shares with others which never sleep."""
    pid = str(node.daemon_pid)
    processor = min(os.sched_getaffinity(0))
    everywhere = ",".join(str(one) for one in sorted(os.sched_getaffinity(0)))
    running = [
        subprocess.Popen(["taskset", "-c", str(processor), "nice", "-n", "-5", "sh", "-c", "while :; do :; done"])
        for _ in range(hogs)
    ]
    subprocess.run(["taskset", "-a", "-p", "-c", str(processor), pid], check=True, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        for one in running:
            one.send_signal(signal.SIGKILL)
            one.wait()
        subprocess.run(["taskset", "-a", "-p", "-c", everywhere, pid], check=True, stdout=subprocess.DEVNULL)


def test_a_daemon_that_gets_no_processor(cluster_of):
    cluster = cluster_of(3, *QUIET_DAEMONS)
    node = cluster.nodes[2]
    with Staged(cluster, {"counts": LARGE, "before": 0.02, "backward": 0.02}) as job, starved(node):
        # What competes with one daemon takes a processor from the others as well: there are few here.
        job.until_first("starved_daemon")
        until(lambda: any(node.name in one["text"] for one in job.explain()["findings"]), "it is among those named")


def test_metrics_and_trainers_are_told_as_well():
    with Cluster(3, [*QUIET_DAEMONS, "debug.explain_seconds=1"]) as cluster:
        first, second, third = cluster.nodes

        def shown(node: Node) -> list[str]:
            return [series for series in metrics(node) if series.startswith("braid_job_finding_ratio{")]

        with Staged(cluster, {**QUIET, "backward": [0.12, 0.12, 0.36]}) as job:
            late = f'cause="late_rank",node="{third.name}",rank="2"}}'
            until(lambda: any(series.endswith(late) for series in shown(first)), "the node of the first rank shows it")
            asked = ran(
                [sys.executable, "-c", "import braid, sys; print(braid.explain(sys.argv[1]))", job.name],
                env={**os.environ, **trainer_environment(), "BRAID_SOCKET": second.socket},
            )  # fmt: skip
            assert asked.returncode == 0, asked.stderr
            assert "Rank 2 on " in asked.stdout, asked.stdout
            assert not shown(second)
        until(lambda: not shown(first), "it goes with the job")


def test_nobody_is_blamed_for_nothing(cluster_of):
    """Steps are long here, so that what else the machine does is not worth to be spoken of."""
    with Staged(cluster_of(3, *QUIET_DAEMONS), {"counts": SMALL, "before": 0.3, "backward": 0.3}) as job:
        for node in itertools.islice(itertools.cycle(range(3)), 6):
            assert causes(job.explain(node)) == ["compute"]


def test_a_node_that_does_not_answer_is_named(cluster_of):
    cluster = cluster_of(3, *QUIET_DAEMONS, "control.peer_timeout_ms=60000")
    with Staged(cluster, QUIET) as job:
        with cluster.nodes[2].stopped():
            done = braidctl(cluster.nodes[0].socket, "explain", "--job", job.name, "--seconds", "0.1")
        assert f"no answer from {cluster.nodes[2].name}" in done.stderr, done.stderr
        assert done.returncode == 0 and "3 ranks on 2 nodes" in done.stdout, done.stdout
        until(lambda: not job.explain()["missing"], "it answers again")


def test_jobs_and_flows_are_listed(cluster_of):
    cluster = cluster_of(3, *QUIET_DAEMONS)
    node, peer = cluster.nodes[0], cluster.nodes[1].name
    assert braidctl(node.socket, "jobs", "--seconds", "0.1").stdout == "no jobs\n"
    with Staged(cluster, {**QUIET, "backward": [0.12, 0.12, 0.36]}) as job:
        until(
            lambda: "late rank: rank 2 on" in braidctl(node.socket, "jobs", "--seconds", "0.2").stdout,
            "the list says what bounds the job",
        )
        (listed,) = json.loads(braidctl(node.socket, "jobs", "--seconds", "0.2", "--json").stdout)
        assert listed["job"] == job.name and listed["world_size"] == 3 and listed["findings"]
        shown = braidctl(node.socket, "top", "--seconds", "0.2", "--count", "2")
        assert shown.returncode == 0, shown.stderr
        assert shown.stdout.count("BOUND BY") == 2 and "\x1b" not in shown.stdout
        flows = json.loads(braidctl(node.socket, "flows", "--json").stdout)
        assert {flow["state"] for flow in flows} == {"open"}
        to_peer = braidctl(node.socket, "flows", "--peer", peer)
        assert to_peer.returncode == 0 and peer in to_peer.stdout and cluster.nodes[2].name not in to_peer.stdout
    refused = braidctl(node.socket, "flows", "--peer", "nowhere")
    assert refused.returncode == 1 and "no flows to or from 'nowhere'; there are some to" in refused.stderr
