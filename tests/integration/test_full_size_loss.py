# SPDX-License-Identifier: Apache-2.0
"""A path that loses every packet of full size without a word, as where a hop has a smaller MTU and ICMP is dropped."""

import re
import subprocess
from collections.abc import Iterator

import pytest
from braid_build import PATIENCE_S
from real_cluster import Cluster, Node, expect_to_go_on, needs_daemons, until, wait_until_running
from silent_network import CONTROL_PORT, dropped, skip_without_packet_filter

pytestmark = [needs_daemons, pytest.mark.sanitized]

SETTINGS = (
    "transport.flows_per_link=4",
    "collective.unit_bytes=256KiB",
    "collective.operation_timeout_ms=120000",
)
FOREVER = "sum_forever(open_job(), count=200_000)"
FULL_SIZE = "INPUT -p tcp -m length --length 1400:65535"


def skip_without_packet_lengths(node: Node) -> None:
    skip_without_packet_filter(node)
    try:
        with dropped(node, FULL_SIZE):
            pass
    except AssertionError as error:
        pytest.skip(f"packets are not told apart by their length here: {error}")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(2, SETTINGS) as two:
        skip_without_packet_lengths(two.nodes[1])
        # What is dropped are packets, not the 64 KiB that the kernel makes them of later.
        for node in two.nodes:
            done = subprocess.run(
                node.enter(["ip", "link", "set", "dev", node.interface, "gso_max_segs", "1"]),
                capture_output=True, text=True, timeout=PATIENCE_S, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                pytest.skip(f"segments cannot be sent one by one here: {done.stderr}")
        yield two


def expect_recognised(sender: Node, receiver: Node) -> None:
    text = f"packets of full size are lost on the path from this node to node '{receiver.name}'"
    until(lambda: text in sender.log(), "it is recognised")
    assert "the MTU of rail eth0 is 1500 here" in sender.log()
    errors = [flow["error"] for flow in sender.status()["flows"]]
    assert any(text in error for error in errors), errors


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
