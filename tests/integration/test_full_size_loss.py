# SPDX-License-Identifier: Apache-2.0
"""A path that loses every packet of full size without a word, as where a hop has a smaller MTU and ICMP is dropped."""

import re
from collections.abc import Iterator

import pytest
from braid_build import ran
from real_cluster import ALL_FLOWS, Cluster, Node, expect_to_go_on, needs_daemons, until, wait_until_running
from second_rail import two_rail_cluster
from silent_network import CONTROL_PORT, dropped, skip_without_packet_filter

pytestmark = [needs_daemons, pytest.mark.sanitized, pytest.mark.transports]

SETTINGS = (
    "transport.flows_per_link=4",
    "collective.unit_bytes=256KiB",
    "collective.operation_timeout_ms=120000",
    ALL_FLOWS,
)
FOREVER = "sum_forever(open_job(), count=200_000)"
FULL_SIZE = "INPUT -p tcp -m length --length 1400:65535"
# Also segments of 536 bytes; not what control connections carry, which stand in for those of a path that is better.
NEARLY_ALL = f"INPUT -p tcp -m multiport ! --ports {CONTROL_PORT} -m length --length 500:65535"
# Rank 0 submits the second tensor as soon as it may, while the first one is on its way.
TWO_TENSORS = """
import pathlib
job = open_job()
specs = [TensorSpec(name, DType.FLOAT32, 200_000) for name in ("first", "second")]
first, second = job.register(specs)
values = np.ones(200_000, np.float32)
job.submit(first, 0, values, timeout=600)
while not pathlib.Path(ARGUMENT).exists():
    time.sleep(0.05)
ended(job, job.submit(second, 0, values, timeout=2))
"""


def skip_without_packet_lengths(node: Node) -> None:
    skip_without_packet_filter(node)
    try:
        with dropped(node, FULL_SIZE):
            pass
    except AssertionError as error:
        pytest.skip(f"packets are not told apart by their length here: {error}")


def send_packets_one_by_one(nodes: list[Node], device: str) -> None:
    """What is dropped are packets, not the 64 KiB that the kernel makes them of later."""
    for node in nodes:
        done = ran(node.enter(["ip", "link", "set", "dev", device, "gso_max_segs", "1"]))
        if done.returncode != 0:
            pytest.skip(f"segments cannot be sent one by one here: {done.stderr}")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(2, SETTINGS) as two:
        skip_without_packet_lengths(two.nodes[1])
        send_packets_one_by_one(two.nodes, two.nodes[0].interface)
        yield two


def expect_recognised(sender: Node, receiver: Node, rail: str = "eth0") -> None:
    text = f"packets of full size are lost on the path from this node to node '{receiver.name}'"
    until(lambda: text in sender.log(), "it is recognised")
    assert f"the MTU of rail {rail} is 1500 here" in sender.log()
    errors = [flow["error"] for flow in sender.status()["flows"]]
    assert any(text in error for error in errors), errors


@pytest.mark.plain
def test_a_job_begins_on_such_a_path(cluster):
    first, second = cluster.nodes
    with dropped(second, FULL_SIZE):
        trainers = cluster.start(FOREVER)
        wait_until_running(trainers)
        expect_recognised(first, second)
        expect_to_go_on(trainers)
    for trainer in trainers:
        trainer.kill()


def test_a_job_goes_on_when_its_path_becomes_one(cluster):
    first, second = cluster.nodes
    trainers = cluster.start(FOREVER)
    wait_until_running(trainers)
    with dropped(second, FULL_SIZE):
        expect_recognised(first, second)
        expect_to_go_on(trainers)
    for trainer in trainers:
        trainer.kill()


def test_a_job_goes_on_where_one_of_two_rails_is_such_a_path():
    with two_rail_cluster(*SETTINGS) as two:
        first, second = two.nodes
        skip_without_packet_lengths(second)
        for rail in ("eth0", "eth1"):
            send_packets_one_by_one(two.nodes, rail)
        trainers = two.start(FOREVER)
        wait_until_running(trainers)
        with dropped(second, FULL_SIZE.replace("INPUT", "INPUT -i eth1")):
            expect_recognised(first, second, "eth1")
            expect_to_go_on(trainers)
        for trainer in trainers:
            trainer.kill()


@pytest.mark.plain
def test_where_the_smallest_segments_are_lost_too_the_error_at_the_deadline_says_so(cluster, tmp_path):
    first, second = cluster.nodes
    lost = f"packets of full size are lost on the path from this node to node '{second.name}'"
    go = tmp_path / "go"
    with dropped(second, NEARLY_ALL):
        trainers = cluster.start(TWO_TENSORS, argument=str(go))
        until(lambda: "segments of 536 bytes are lost, too" in first.log(), "it is found hopeless")
        go.touch()
        for trainer in trainers:
            text = trainer.error()["text"]
            assert "'second' step 0" in text and "the network has not finished it: node 'node0' says" in text, text
            assert lost in text and "small ones pass" in text and "segments of 536 bytes are lost, too" in text, text


def test_control_connections_use_small_segments_everywhere(cluster):
    trainers = cluster.start(FOREVER)
    wait_until_running(trainers)
    for node in cluster.nodes:
        control = f"( sport = :{CONTROL_PORT} or dport = :{CONTROL_PORT} )"
        shown = node.run("ss", "-tinH", "state", "established", control)
        sizes = [int(size) for size in re.findall(r"\bmss:(\d+)", shown)]
        assert sizes and max(sizes) <= 1200, shown
    for trainer in trainers:
        trainer.kill()
