# SPDX-License-Identifier: Apache-2.0
"""`braidctl check`: what keeps a job from running on two nodes is named before the job is started."""

import contextlib
import json
import pathlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from braid_build import BRAIDCTL, braidctl, ran
from real_cluster import SUM_FOREVER, Cluster, Node, end_running, expect_to_go_on, needs_daemons, wait_until_running
from second_user import GROUP_SETTING, NOBODY, needs_nobody, way_opened
from silent_network import CONTROL_PORT, dropped, skip_without_packet_filter

pytestmark = [needs_daemons, pytest.mark.sanitized]

# How fast anything is depends on the machine, and what else runs on it.
OF_SPEED = {"rate", "loss"}


def checks(node: Node, *peers: str) -> tuple[int, list[dict]]:
    """The exit code, and of each peer the text of each check: {"good": …, "mtu": ("ok", "…"), …}."""
    done = braidctl(node.socket, "check", "--json", "--peer", *peers)
    assert done.returncode in (0, 1), done.stderr
    told = json.loads(done.stdout)
    assert (done.returncode == 0) == told["good"], told
    return done.returncode, told["peers"]


def bad(peer: dict) -> dict[str, str]:
    return {one["check"]: one["text"] for one in peer["checks"] if not one["good"] and one["check"] not in OF_SPEED}


@contextlib.contextmanager
def restarted_with(node: Node, *settings: str) -> Iterator[None]:
    """Meanwhile the daemon runs with other settings."""
    usual = node.daemon_command
    node.daemon_command = [*usual, *(word for setting in settings for word in ("--set", setting))]
    try:
        node.signal(9)
        node.restart()
        yield
    finally:
        node.daemon_command = usual
        node.signal(9)
        node.restart()


@pytest.fixture
def cluster(cluster_of) -> Cluster:
    return cluster_of(3, GROUP_SETTING)


def test_nodes_between_which_all_is_well(cluster):
    here, *others = cluster.nodes
    _, peers = checks(here, *(node.address for node in others))
    assert [peer["facts"]["there"]["name"] for peer in peers] == ["node1", "node2"]
    for peer in peers:
        assert not bad(peer)
        names = [one["check"] for one in peer["checks"]]
        assert names[:8] == ["reach", "back", "version", "settings", "clock", "mtu", "flows", "rate"], names
        for direction in ("one_to_there", "one_to_here", "all_to_there", "all_to_here"):
            rate = peer["facts"][direction]
            assert rate["error"] == "" and rate["bytes"] > 0 and rate["segments"] > 0, rate
    # As people read it, and that nothing is left that a job could stumble on.
    done = braidctl(here.socket, "check", "--peer", others[0].address)
    first, *_, last = done.stdout.splitlines()
    assert first == others[0].address and last.startswith("verdict: "), done.stdout
    cluster.expect_healthy()


def test_a_job_goes_on_meanwhile(cluster):
    trainers = cluster.start(SUM_FOREVER)
    wait_until_running(trainers)
    _, peers = checks(cluster.nodes[1], cluster.nodes[0].address, cluster.nodes[2].address)
    assert [bad(peer) for peer in peers] == [{}, {}]
    expect_to_go_on(trainers)
    end_running(trainers)


def test_all_nodes_check_each_other_at_once(cluster):
    started = [
        (node, [other.address for other in cluster.nodes if other is not node]) for node in cluster.nodes
    ]
    with ThreadPoolExecutor(len(started)) as pool:
        told = list(pool.map(lambda one: checks(one[0], *one[1]), started))
    for _, peers in told:
        assert [bad(peer) for peer in peers] == [{}, {}]


def test_a_port_where_no_daemon_listens_and_a_name_that_nobody_knows(cluster):
    there = cluster.nodes[1].address
    code, (closed, unknown, itself) = checks(cluster.nodes[0], f"{there}:9", "nobody.invalid", cluster.nodes[0].address)
    assert code == 1
    assert f"{there}:9" in bad(closed)["reach"] and "is braidd running there" in bad(closed)["reach"]
    assert "nobody.invalid" in bad(unknown)["reach"]
    assert "is this node itself" in bad(itself)["reach"]


def test_another_cluster_key(cluster, tmp_path):
    key = tmp_path / "other.key"
    key.write_text("ab" * 32)
    key.chmod(0o600)
    with restarted_with(cluster.nodes[1], f"control.cluster_key_file={key}"):
        code, (wrong, right) = checks(cluster.nodes[0], cluster.nodes[1].address, cluster.nodes[2].address)
        assert code == 1 and not bad(right)
        assert cluster.nodes[1].address in bad(wrong)["reach"] and "cluster key" in bad(wrong)["reach"]


def test_settings_that_jobs_need_alike(cluster):
    with restarted_with(cluster.nodes[1], "collective.unit_bytes=1048576"):
        code, (peer,) = checks(cluster.nodes[0], cluster.nodes[1].address)
        assert code == 1
        assert list(bad(peer)) == ["settings"]
        assert "collective.unit_bytes is 8388608 here and 1048576 there" in bad(peer)["settings"]


def test_another_mtu(cluster):
    node = cluster.nodes[1]
    node.run("ip", "link", "set", node.interface, "mtu", "1400")
    try:
        code, (peer,) = checks(cluster.nodes[0], node.address)
    finally:
        node.run("ip", "link", "set", node.interface, "mtu", "1500")
    assert code == 1
    assert list(bad(peer)) == ["mtu"]
    assert "eth0 1500" in bad(peer)["mtu"] and "eth0 1400" in bad(peer)["mtu"]


def test_a_port_that_only_this_node_cannot_be_reached_at(cluster_of):
    # Short, since what is dropped is waited for.
    cluster = cluster_of(2, "debug.connect_timeout_ms=1000")
    here, there = cluster.nodes
    skip_without_packet_filter(here)
    with dropped(here, f"INPUT -p tcp --dport {CONTROL_PORT} -s {there.address}"):
        code, (peer,) = checks(here, there.address)
    assert code == 1
    assert list(bad(peer)) == ["back"]
    assert f"let TCP port {CONTROL_PORT} of this node through" in bad(peer)["back"]


def test_ports_of_flows_that_are_closed(cluster_of):
    cluster = cluster_of(2, "debug.connect_timeout_ms=1000")
    here, there = cluster.nodes
    skip_without_packet_filter(here)
    rest = f"1:{CONTROL_PORT - 1},{CONTROL_PORT + 1}:65535"
    both = f"-p tcp -m multiport --sports {rest} -m multiport --dports {rest}"
    with dropped(there, f"INPUT {both}", f"OUTPUT {both}"):
        # Links that are open already would be closed first when they are silent.
        here.signal(9)
        here.restart()
        code, (peer,) = checks(here, there.address)
    assert code == 1
    assert list(bad(peer)) == ["flows"]
    assert "transport.port" in bad(peer)["flows"]


@needs_nobody
def test_only_an_operator_may_ask(cluster):
    here, there = cluster.nodes[:2]
    with way_opened(here.socket):
        done = ran([*NOBODY, BRAIDCTL, "--socket", here.socket, "check", "--peer", there.address], cwd="/")
    assert done.returncode == 1 and not done.stdout
    assert "only root and the user that braidd runs as" in done.stderr and "sudo" in done.stderr


def test_wrong_arguments(cluster):
    socket = cluster.nodes[0].socket
    for arguments in ((), ("--peer",), ("--peer", "a b"), ("--peer", "a:0"), ("--peer", *(f"n{i}" for i in range(65)))):
        done = braidctl(socket, "check", *arguments)
        assert done.returncode == 2 and done.stderr, arguments
    gone = pathlib.Path(socket).with_name("none")
    done = braidctl(str(gone), "check", "--peer", "127.0.0.1")
    assert done.returncode == 1 and str(gone) in done.stderr
