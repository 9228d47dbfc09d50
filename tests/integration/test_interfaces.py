# SPDX-License-Identifier: Apache-2.0
"""Which of a node's interfaces its daemon takes, and what is said where that cannot work."""

import itertools
import signal
from collections.abc import Iterator

import pytest
from real_cluster import Cluster, needs_daemons, until
from single_daemon import SingleDaemon

pytestmark = needs_daemons

BRIDGE = "172.17.0.1"  # as docker gives it to docker0 on every node
# Rank 0 finds out where its daemon is, and says it in a file.
MEET = """
import pathlib
said = pathlib.Path(ARGUMENT)
if RANK == 0:
    found = braid.master()
    said.with_suffix(".new").write_text(f"{found.address} {found.node}")
    said.with_suffix(".new").rename(said)
while not said.exists():
    time.sleep(0.02)
address, node = said.read_text().split()
with open_job(master_address=address, master_node=int(node)) as job:
    handle = job.register([TensorSpec("weights", DType.FLOAT32, 1000)])[0]
    sum = np.frombuffer(ended(job, job.submit(handle, 0, np.ones(1000, np.float32))), np.float32)
    report(address=address, sum=float(sum[0]))
"""


def with_settings(command: list[str], **settings: str) -> list[str]:
    words = []
    for word in command:
        key, is_setting, _ = word.partition("=")
        words.append(f"{key}={settings[key]}" if is_setting and key in settings else word)
    return words


@pytest.fixture(scope="module")
def bridged() -> Iterator[Cluster]:
    """Two nodes without a default route; docker0 comes before eth1, the cable between them. eth0 has no address."""
    with Cluster(2, ("transport.flows_per_link=1",)) as cluster:
        first, second = cluster.nodes
        for node in cluster.nodes:
            node.run("ip", "link", "add", "docker0", "type", "bridge")
            node.run("ip", "addr", "add", f"{BRIDGE}/16", "dev", "docker0")
            node.run("ip", "link", "add", "container", "type", "veth", "peer", "inside")
            node.run("ip", "link", "set", "inside", "up")
            node.run("ip", "link", "set", "container", "master", "docker0", "up")
            node.run("ip", "link", "set", "docker0", "up")
        first.run("ip", "link", "add", "eth1", "type", "veth", "peer", "eth1", "netns", second.namespace)
        for number, node in enumerate(cluster.nodes, 1):
            node.run("ip", "addr", "add", f"10.78.77.{number}/24", "dev", "eth1")
            node.run("ip", "link", "set", "eth1", "up")
            node.run("ip", "addr", "flush", "dev", "eth0")
        # The kernel tells of carriers when it has the time.
        for node, device in itertools.product(cluster.nodes, ("docker0", "eth1")):
            until(lambda: "state UP" in node.run("ip", "link", "show", device), f"{device} has a carrier")
        yield cluster


def restart(cluster: Cluster, **settings: str) -> None:
    for node in cluster.nodes:
        node.daemon_command = with_settings(node.daemon_command, **settings)
        node.signal(signal.SIGKILL)
        cluster.wait_until_gone(node)
        node.restart()


def test_a_bridge_that_comes_first_is_not_taken(bridged, tmp_path):
    automatic = ("node.address", "control.listen", "transport.rails", "metrics.address")
    restart(bridged, **{key: "auto" if key != "metrics.address" else "127.0.0.1" for key in automatic})
    for result in [trainer.result() for trainer in bridged.start(MEET, argument=str(tmp_path / "master"))]:
        assert result["address"] == "10.78.77.1" and result["sum"] == 2.0
    log = bridged.nodes[0].log()
    assert "rail eth1 (there is no default route" in log
    assert "other nodes reach this one at 10.78.77.1" in log
    assert f"docker0 ({BRIDGE}, bridge)" in log


def test_an_address_that_both_nodes_have_is_named(bridged, tmp_path):
    own = {"node.address": BRIDGE, "control.listen": BRIDGE, "transport.rails": "docker0", "metrics.address": BRIDGE}
    restart(bridged, **own)
    trainers = bridged.start(MEET, argument=str(tmp_path / "master"))
    text = trainers[1].error()["text"]
    assert f"the braidd of rank 0 is to be reached at {BRIDGE}" in text, text
    assert "also an address of this node ('node1'), on its interface docker0" in text, text
    trainers[0].kill()


# What each node has on eth0, which comes before eth1: the same address, or one that the other node does not reach.
@pytest.mark.parametrize(
    ("on_eth0", "said"),
    [
        (("192.168.0.1", "192.168.0.1"), "also an address of this node ('node1'), on its interface eth0"),
        (("192.168.1.1", "192.168.2.1"), "the daemon at 192.168.1.1:7410: cannot connect: network is unreachable"),
    ],
)
def test_where_the_first_interface_does_not_lead_to_the_other_node_the_way_out_is_named(
    bridged, tmp_path, on_eth0, said
):
    for node, address in zip(bridged.nodes, on_eth0):
        node.run("ip", "addr", "add", f"{address}/24", "dev", "eth0")
    try:
        automatic = ("node.address", "control.listen", "transport.rails")
        restart(bridged, **{key: "auto" for key in automatic}, **{"metrics.address": "127.0.0.1"})
        trainers = bridged.start(MEET, argument=str(tmp_path / "master"))
        text = trainers[1].error()["text"]
        trainers[0].kill()
        assert f"{on_eth0[0]}" in text and said in text, text
        assert "set node.address and transport.rails of both" in text, text
        assert f"this node has eth0 ({on_eth0[1]}), " in text and "eth1 (10.78.77.2)" in text, text
        own = [{"node.address": f"10.78.77.{number}", "transport.rails": "eth1"} for number in (1, 2)]
        for node, settings in zip(bridged.nodes, own):
            node.daemon_command = with_settings(node.daemon_command, **settings)
        restart(bridged)
        for result in [trainer.result() for trainer in bridged.start(MEET, argument=str(tmp_path / "again"))]:
            assert result["address"] == "10.78.77.1" and result["sum"] == 2.0
    finally:
        for node in bridged.nodes:
            node.run("ip", "addr", "flush", "dev", "eth0")


def test_who_cannot_be_reached_is_named_with_both_ends(bridged):
    restart(bridged, **{"node.address": "10.78.77.1", "control.listen": "0.0.0.0", "transport.rails": "eth1"})
    nobody = "open_job(master_address='10.78.77.99', timeout=2)"
    (trainer,) = bridged.start(nobody, nodes=[1])
    text = trainer.error()["text"]
    assert "cannot connect to the daemon at 10.78.77.99:7410 from 10.78.77.2 (eth1)" in text, text


def test_a_rank_that_waits_at_a_daemon_without_a_key_is_told_why_no_other_node_comes():
    with SingleDaemon() as daemon:
        (trainer,) = daemon.start("open_job(world_size=2, timeout=1)")
        text = trainer.error()["text"]
        assert "serves its own host only" in text and "set control.cluster_key_file on all nodes" in text, text
