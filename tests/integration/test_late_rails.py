# SPDX-License-Identifier: Apache-2.0
"""A node whose second network card gets its link after the daemon has started."""

import signal
from collections.abc import Iterator

import pytest
from braid_build import ran
from real_cluster import ALL_FLOWS, Cluster, end_running, needs_daemons, until, wait_until_running

pytestmark = [needs_daemons, pytest.mark.transports]

FOREVER = "sum_forever(open_job(), count=1_000_000)"
FLOWS_PER_LINK = 8


def with_rails(command: list[str], rails: str) -> list[str]:
    assert any(word.startswith("transport.rails=") for word in command), command
    return [
        f"transport.rails={rails}" if word.startswith("transport.rails=") else word
        for word in command
    ]


@pytest.fixture
def cabled() -> Iterator[Cluster]:
    """Two nodes with a second cable between them, which is plugged in on the first one only."""
    settings = [f"transport.flows_per_link={FLOWS_PER_LINK}", "collective.unit_bytes=256KiB", ALL_FLOWS]
    with Cluster(2, settings) as cluster:
        first, second = cluster.nodes
        first.run(
            "ip", "link", "add", "eth1", "type", "veth", "peer", "eth1", "netns", second.namespace
        )
        for number, node in enumerate(cluster.nodes, 1):
            node.run("ip", "addr", "add", f"10.78.78.{number}/24", "dev", "eth1")
        first.run("ip", "link", "set", "eth1", "up")
        yield cluster


def open_flows_of(cluster: Cluster, rail: str) -> int:
    return sum(
        flow["state"] == "open" and flow["rail"] == rail and flow["direction"] == "out"
        for node in cluster.nodes
        for flow in node.status()["flows"]
    )


def test_a_rail_without_a_link_is_used_when_it_has_one(cabled):
    # To the first node it has no carrier, on the second it is switched off.
    for node in cabled.nodes:
        node.daemon_command = with_rails(node.daemon_command, "[eth0,eth1]")
        node.signal(signal.SIGKILL)
        cabled.wait_until_gone(node)
        node.restart()
        assert "rail eth1 is down or has no carrier: this node starts without it" in node.log()
        until(lambda node=node: node.status()["rails_down"] == ["eth1"], "status names the rail")
    trainers = cabled.start(FOREVER)
    wait_until_running(trainers)
    assert open_flows_of(cabled, "eth0") == FLOWS_PER_LINK
    assert open_flows_of(cabled, "eth1") == 0
    cabled.nodes[1].run("ip", "link", "set", "eth1", "up")
    until(lambda: open_flows_of(cabled, "eth1") == FLOWS_PER_LINK, "its flows are open")
    assert all(node.status()["rails_down"] == [] for node in cabled.nodes)
    end_running(trainers)
    cabled.expect_healthy()


@pytest.mark.parametrize("node", [0, 1], ids=["no carrier", "down"])
def test_without_any_link_the_daemon_says_so_and_ends(cabled, node):
    one = cabled.nodes[node]
    one.signal(signal.SIGKILL)
    cabled.wait_until_gone(one)
    done = ran(with_rails(one.daemon_command, "[eth1]"))
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    reason = "is down" if node else "has no carrier"
    assert f"transport.rails: interface 'eth1' {reason}" in said
    one.restart()
    cabled.expect_healthy()
