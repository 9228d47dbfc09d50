# SPDX-License-Identifier: Apache-2.0
"""Flows that die under a running job: it goes on with exact sums, and they are opened again."""

import subprocess
import time

import pytest
from braid_build import IS_SANITIZED, ran
from cluster_tool import CLUSTER
from real_cluster import (
    ALL_FLOWS,
    PEERS_WAIT,
    SUM_FOREVER,
    Cluster,
    end_running,
    expect_to_go_on,
    needs_daemons,
    until,
    wait_until_running,
)

pytestmark = [needs_daemons, pytest.mark.sanitized, pytest.mark.transports]

FLOWS = 6
CONTROL_PORT = 7410
SETTINGS = (f"transport.flows_per_link={FLOWS}", "collective.unit_bytes=256KiB", ALL_FLOWS)
# More than acknowledgements come to: there are chunks among them.
UNREAD_BYTES = 20_000
FOREVER = "sum_forever(open_job(), count=1_000_000)"


def data_connections(node, unread_bytes: int = 0) -> list[tuple[str, str]]:
    """(local port, remote port) of the node's flows as the kernel sees them.

    Only those from which it has so many bytes still to read.
    """
    found = []
    for line in node.run("ss", "-tnH", "state", "established").splitlines():
        unread, _, local, remote = line.split()[:4]
        ports = (local.rpartition(":")[2], remote.rpartition(":")[2])
        if str(CONTROL_PORT) in ports or not local.startswith(node.address):
            continue
        if int(unread) >= unread_bytes:
            found.append(ports)
    return found


def kill_connection(node, ports: tuple[str, str]) -> bool:
    """Both ends get a reset. False if the kernel would not do it."""
    ran(node.enter(["ss", "-K", "-tn", "sport", "=", f":{ports[0]}", "dport", "=", f":{ports[1]}"]))
    return ports not in data_connections(node)


def open_flows(node) -> int:
    return sum(flow["state"] == "open" for flow in node.status()["flows"])


def test_a_job_survives_the_death_of_flows(cluster_of):
    cluster = cluster_of(3, *SETTINGS)
    trainers = cluster.start(FOREVER)
    wait_until_running(trainers)
    node = cluster.nodes[1]
    full = open_flows(node)
    assert full >= 2 * FLOWS  # out to one neighbour, in from the other
    first = data_connections(node)[0]
    if not kill_connection(node, first):
        pytest.skip("this kernel cannot destroy connections (CONFIG_INET_DIAG_DESTROY)")
    # One after the other, never all flows of a link at once: that would be a lost link.
    for _ in range(4):
        until(lambda: open_flows(node) >= full, "the flow is open again")
        kill_connection(node, data_connections(node)[-1])
        expect_to_go_on(trainers)
    until(lambda: open_flows(node) >= full, "all flows are open again")
    counters = [one.status()["counters"] for one in cluster.nodes]
    assert sum(one["braid_flow_failures_total"] for one in counters) >= 4
    assert all(one["braid_job_failures_total.job_failed"] == 0 for one in counters)
    end_running(trainers)


def test_chunks_of_dead_flows_are_sent_again(cluster_of):
    cluster = cluster_of(3, *SETTINGS, PEERS_WAIT)
    trainers = cluster.start(FOREVER)
    wait_until_running(trainers)
    receiver, *senders = cluster.nodes
    full = sum(map(open_flows, cluster.nodes))
    resent = cluster.total("braid_chunks_resent_total")

    def failures() -> int:
        return sum(node.counter("braid_flow_failures_total") for node in senders)

    def a_flow_with_chunks_dies() -> None:
        with receiver.stopped():
            # None where it stopped between two operations that wait for it.
            end = time.monotonic() + 1
            while not (unread := data_connections(receiver, UNREAD_BYTES)):
                if time.monotonic() > end:
                    return
                time.sleep(0.02)
            before = failures()
            if not kill_connection(receiver, unread[0]):
                pytest.skip("this kernel cannot destroy connections (CONFIG_INET_DIAG_DESTROY)")
            # Before the receiver can read what had come.
            until(lambda: failures() > before, "the sender knows")

    def are_sent_again() -> bool:
        a_flow_with_chunks_dies()
        expect_to_go_on(trainers)
        until(lambda: sum(map(open_flows, cluster.nodes)) >= full, "all flows are open again")
        return cluster.total("braid_chunks_resent_total") > resent

    # A slow flow's chunks may have gone over another one already.
    until(are_sent_again, "chunks are sent again")
    end_running(trainers)


def test_a_network_that_stutters_is_no_failure(cluster_of):
    cluster = cluster_of(3, *SETTINGS)
    trainers = cluster.start(SUM_FOREVER)
    wait_until_running(trainers)
    node = cluster.nodes[2]
    for _ in range(2):
        node.run("ip", "link", "set", node.interface, "down")
        time.sleep(0.5)  # the stutter
        node.run("ip", "link", "set", node.interface, "up")
        expect_to_go_on(trainers)
    end_running(trainers)


@pytest.mark.skipif(IS_SANITIZED, reason="the sanitizer would be slower than the network")
def test_a_flow_that_stays_slow_is_opened_again_and_is_no_failure():
    with Cluster(3) as cluster:
        # By the hash of its ports each of 24 flows and more is one of the slow ones, or not.
        caps = [CLUSTER, "--set-caps", cluster.directory, "--flow-mbit", "100,100,100,5"]
        subprocess.run(caps, check=True)
        trainers = cluster.start("sum_forever(open_job(), count=2_000_000)")
        wait_until_running(trainers)
        until(lambda: cluster.total("braid_flow_replacements_total") > 0, "a slow flow is replaced")
        expect_to_go_on(trainers)
        assert cluster.total("braid_flow_failures_total") == 0
        end_running(trainers)


def test_links_that_no_job_uses_are_closed(cluster_of):
    cluster = cluster_of(3, *SETTINGS, "debug.idle_link_seconds=1")
    for job in ("first", "second"):  # the second one opens them again
        trainers = cluster.start(FOREVER, job=job)
        wait_until_running(trainers)
        assert all(open_flows(node) for node in cluster.nodes)
        for trainer in trainers:
            trainer.kill()
        for node in cluster.nodes:
            until(lambda node=node: open_flows(node) == 0, "no flow is left")
            # A thread beside the loop closes the sockets.
            until(lambda node=node: not data_connections(node), "no connection is left")
    for node in cluster.nodes:
        assert node.counter("braid_flow_failures_total") == 0, node.log()
