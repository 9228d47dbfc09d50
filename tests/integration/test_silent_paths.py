# SPDX-License-Identifier: Apache-2.0
"""Paths that lose packets without a word: the job goes on over the others, with exact sums."""

from collections.abc import Iterator

import pytest
from real_cluster import ALL_FLOWS, Cluster, expect_to_go_on, needs_daemons, until, wait_until_running
from second_rail import two_rail_cluster
from silent_network import (
    all_flows_rules,
    connection_rules,
    dropped,
    skip_without_packet_filter,
)
from test_flows import data_connections, open_flows

pytestmark = [needs_daemons, pytest.mark.sanitized, pytest.mark.transports]

# A job that stalls fails, long before the test's own patience ends.
SETTINGS = (
    "transport.flows_per_link=8",
    "collective.unit_bytes=256KiB",
    "collective.operation_timeout_ms=60000",
    ALL_FLOWS,
)
FOREVER = "sum_forever(open_job(), count=1_000_000)"


def kill(trainers) -> None:
    for trainer in trainers:
        trainer.kill()


@pytest.mark.parametrize("directions", ["both", "in", "out"])
def test_one_flow_is_silent(cluster_of, directions):
    cluster = cluster_of(2, *SETTINGS)
    node = cluster.nodes[1]
    skip_without_packet_filter(node)
    trainers = cluster.start(FOREVER)
    wait_until_running(trainers)
    full = open_flows(node)
    before = cluster.total("braid_flow_silences_total")
    with dropped(node, *connection_rules(data_connections(node)[3], directions)):
        until(lambda: cluster.total("braid_flow_silences_total") > before, "it is given up")
        expect_to_go_on(trainers)
        until(lambda: open_flows(node) >= full, "it is open again, from another port")
    errors = [
        flow["error"] for one in cluster.nodes for flow in one.status()["flows"] if flow["error"]
    ]
    assert any("on rail eth0: nothing acknowledged for" in error for error in errors), errors
    kill(trainers)


@pytest.mark.plain
def test_all_flows_are_silent_while_the_nodes_see_each_other(cluster_of):
    cluster = cluster_of(2, *SETTINGS)
    node = cluster.nodes[1]
    skip_without_packet_filter(node)
    trainers = cluster.start(FOREVER)
    wait_until_running(trainers)
    full = open_flows(node)
    before = cluster.total("braid_flow_silences_total")
    with dropped(node, *all_flows_rules()):
        until(lambda: cluster.total("braid_flow_silences_total") > before, "one is given up")
    expect_to_go_on(trainers)
    until(lambda: open_flows(node) >= full, "all flows are open again")
    kill(trainers)
    cluster.expect_healthy()


def test_the_next_job_uses_no_flow_that_went_silent_under_the_last_one(cluster_of):
    cluster = cluster_of(2, *SETTINGS)
    node = cluster.nodes[1]
    skip_without_packet_filter(node)
    trainers = cluster.start(FOREVER)
    wait_until_running(trainers)
    with dropped(node, *all_flows_rules()):
        # What is on its way now will never be acknowledged.
        until(lambda: node.status()["jobs"][0]["operations_pending"] > 0, "it is in the middle")
        kill(trainers)
        until(lambda: not any(one.status()["jobs"] for one in cluster.nodes), "the job is over")
    trainers = cluster.start(FOREVER)
    wait_until_running(trainers)
    expect_to_go_on(trainers)
    kill(trainers)


# --- two rails ---


@pytest.fixture(scope="module")
def two_rails() -> Iterator[Cluster]:
    with two_rail_cluster(*SETTINGS, "control.peer_timeout_ms=10000") as cluster:
        yield cluster


def open_flows_of(cluster, rail: str) -> int:
    return sum(
        flow["state"] == "open" and flow["rail"] == rail and flow["direction"] == "out"
        for node in cluster.nodes
        for flow in node.status()["flows"]
    )


def test_a_rail_that_is_silent_is_left_alone_until_it_is_well(two_rails):
    skip_without_packet_filter(two_rails.nodes[0])
    trainers = two_rails.start(FOREVER)
    wait_until_running(trainers)
    full = open_flows_of(two_rails, "eth1")
    assert full == 8  # half of each link's
    with dropped(two_rails.nodes[0], "INPUT -i eth1"):
        until(lambda: open_flows_of(two_rails, "eth1") == 0, "its flows are given up")
        expect_to_go_on(trainers)
    until(lambda: open_flows_of(two_rails, "eth1") == full, "its flows are open again")
    expect_to_go_on(trainers)
    kill(trainers)


def test_a_rail_that_is_down_is_known_and_used_again_when_it_is_up(two_rails):
    first, second = two_rails.nodes
    trainers = two_rails.start(FOREVER)
    wait_until_running(trainers)
    full = open_flows_of(two_rails, "eth1")
    first.run("ip", "link", "set", "eth1", "down")
    until(lambda: first.status()["rails_down"] == ["eth1"], "the node knows")
    until(lambda: second.status()["rails_down"] == ["eth1"], "the other one has no carrier")
    until(lambda: open_flows_of(two_rails, "eth1") == 0, "its flows are given up")
    assert first.counter("braid_rail_up.eth1") == 0 and first.counter("braid_rail_up.eth0") == 1
    expect_to_go_on(trainers)
    errors = [flow["error"] for flow in first.status()["flows"] if flow["rail"] == "eth1"]
    assert any("on rail eth1: the rail is down" in error for error in errors), errors
    first.run("ip", "link", "set", "eth1", "up")
    until(lambda: open_flows_of(two_rails, "eth1") == full, "its flows are open again")
    assert first.status()["rails_down"] == [] and first.counter("braid_rail_up.eth1") == 1
    expect_to_go_on(trainers)
    kill(trainers)
