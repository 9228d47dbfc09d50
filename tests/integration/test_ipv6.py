# SPDX-License-Identifier: Apache-2.0
"""Nodes with IPv6 addresses alone, nodes with both families, and what is said where they do not fit together."""

import contextlib
import ipaddress
import json
import signal
from collections.abc import Iterator

import pytest
from braid_build import BRAIDCTL, BRAIDD, braidctl, ran
from real_cluster import TRANSPORT, Cluster, Node, needs_daemons, until
from test_interfaces import MEET, with_settings
from test_strangers import CONTROL_PORT, METRICS_PORT, rejected, visit

pytestmark = needs_daemons

# Sums of several sizes: one message, many, and pieces on every flow; over and over, so that links carry both ways.
SUMS = """
with open_job() as job:
    handle = dynamic(job)
    good = []
    for step, count in enumerate([1, 1000, 250_000, 3_000_000]):
        got = ended(job, job.submit(handle, step, np.full(count, RANK + 1, dtype=np.float32)))
        good.append(bool((np.frombuffer(got, np.float32) == WORLD * (WORLD + 1) / 2).all()))
    report(good=good)
"""
LINK_LOCAL = ipaddress.ip_network("fe80::/10")


def expect_sums(cluster: Cluster, **options) -> None:
    for trainer in cluster.start(SUMS, **options):
        assert trainer.result()["good"] == [True] * 4


def restart(node: Node, **settings: str) -> None:
    node.daemon_command = with_settings(node.daemon_command, **settings)
    node.signal(signal.SIGKILL)
    node.restart()


def addresses(node: Node, family: str, device: str | None = None) -> list[str]:
    shown = json.loads(node.run("ip", "-j", family, "address", "show", *(["dev", device] if device else [])))
    return [info["local"] for link in shown if link for info in link.get("addr_info", [])]


def link_local_of(node: Node, device: str) -> str:
    (own,) = [one for one in addresses(node, "-6", device) if ipaddress.ip_address(one) in LINK_LOCAL]
    return own


def add_cable(cluster: Cluster, addressed: bool) -> None:
    """A second cable, eth1, between two nodes; without an address of its own it has link-local ones."""
    first, second = cluster.nodes
    first.run("ip", "link", "add", "eth1", "type", "veth", "peer", "eth1", "netns", second.namespace)
    for number, node in enumerate(cluster.nodes, 1):
        if addressed:
            node.run("ip", "address", "add", f"fd78::{number}/64", "dev", "eth1", "nodad")
        node.run("ip", "link", "set", "eth1", "up")
    for node in cluster.nodes:
        until(lambda node=node: "UP" in node.run("ip", "-br", "link", "show", "eth1").split(), "the cable is in")


def rails_of_flows(node: Node) -> set[str]:
    return {flow["rail"] for flow in node.status()["flows"] if flow["state"] == "open"}


def has_only_v6(node: Node) -> bool:
    """Whether every connection with other nodes goes over IPv6."""
    lines = [line.split() for line in node.run("ss", "-tnpH").splitlines() if f"pid={node.daemon_pid}," in line]
    ends = {end.rpartition(":")[0].strip("[]").partition("%")[0] for line in lines for end in line[3:5]}
    # The page's own way within the daemon stays on 127.0.0.1.
    return len(ends - {"127.0.0.1"}) > 1 and all(":" in end for end in ends - {"127.0.0.1"})


@pytest.fixture(scope="module")
def pure() -> Iterator[Cluster]:
    with Cluster(2, ("transport.flows_per_link=2",), ipv6=True) as cluster:
        for node in cluster.nodes:
            assert addresses(node, "-4") == ["127.0.0.1"]
            assert ":" in node.address
        yield cluster


@pytest.mark.transports
def test_a_job_trains_where_there_is_no_ipv4(pure, tmp_path):
    expect_sums(pure)
    assert all(has_only_v6(node) for node in pure.nodes)
    for result in [trainer.result() for trainer in pure.start(MEET, argument=str(tmp_path / "master"))]:
        assert result["address"] == pure.nodes[0].address and result["sum"] == 2.0


@pytest.mark.transports
def test_strangers_are_refused_there_as_well(pure):
    pure.expect_healthy()
    victim, stranger = pure.nodes
    before = rejected(victim)
    lines = [line for line in victim.run("ss", "-tlnpH").splitlines() if f"pid={victim.daemon_pid}," in line]
    at_v6 = {int(line.split()[3].rpartition(":")[2]) for line in lines if line.split()[3].startswith("[")}
    ports = sorted(at_v6 - {METRICS_PORT})
    assert CONTROL_PORT in ports and len(ports) > 1, ports
    for port in ports:
        visit(stranger, "garbage", victim.address, str(port))
    # UCX's ports answer nobody once their flow is open.
    doors = ("control",) if TRANSPORT else ("control", "transport")
    until(lambda: all(rejected(victim)[door] > before[door] for door in doors), "they are counted")
    pure.expect_healthy()


def test_the_page_and_braidctl_are_asked_at_ipv6_addresses(pure):
    pure.expect_healthy()  # the daemons know each other by a job
    node, other = pure.nodes
    for asking in pure.nodes:
        assert "braid_build_info" in asking.run("curl", "-sf", f"http://[{node.address}]:{METRICS_PORT}/metrics")
    there = f"[{node.address}]:{METRICS_PORT}"
    told = json.loads(node.run(str(BRAIDCTL), "--host", there, "status", "--json"))
    assert told["node"]["address"] == node.address
    done = ran(other.enter([str(BRAIDCTL), "--host", there, "status"]))
    assert done.returncode != 0 and f"the page at {there} answers 403" in done.stderr, done.stderr
    shown = braidctl(other.socket, "status").stdout
    assert f"node0 ({there.replace(str(METRICS_PORT), str(CONTROL_PORT))})" in shown, shown


def test_the_way_to_an_ipv6_node_is_checked(pure):
    here, there = pure.nodes
    for peer in (there.address, f"[{there.address}]:{CONTROL_PORT}"):
        done = braidctl(here.socket, "check", "--json", "--peer", peer)
        (told,) = json.loads(done.stdout)["peers"]
        by_name = {check["check"]: check for check in told["checks"]}
        assert all(by_name[name]["good"] for name in ("reach", "back", "settings", "mtu", "flows")), told["checks"]
        assert f"'node1' ([{there.address}]:{CONTROL_PORT})" in by_name["reach"]["text"]
        assert [rail["address"] for rail in told["facts"]["there"]["rails"]] == [there.address]
        for way in ("one_to_there", "all_to_here"):
            assert told["facts"][way]["segments"] > 0, told["facts"][way]
    for peer, said in (("fe80::1:7000", "use fe80::1:7000%eth0"), ("fd77::9:9:9:9:9:9:9:9", "is no node; right is")):
        done = braidctl(here.socket, "check", "--peer", peer)
        assert done.returncode != 0 and said in done.stderr, done.stderr


def test_a_port_that_the_kernel_chose_goes_along_with_the_address(pure, tmp_path):
    usual = [node.daemon_command for node in pure.nodes]
    for node in pure.nodes:
        restart(node, **{"control.port": "auto"})
    for result in [trainer.result() for trainer in pure.start(MEET, argument=str(tmp_path / "master"))]:
        host, _, port = result["address"].rpartition(":")
        assert host == f"[{pure.nodes[0].address}]" and int(port) != CONTROL_PORT and result["sum"] == 2.0
    for node, command in zip(pure.nodes, usual, strict=True):
        node.daemon_command = command
        restart(node)


def test_everything_automatic(pure, tmp_path):
    usual = [node.daemon_command for node in pure.nodes]
    for node in pure.nodes:
        node.run("ip", "-6", "route", "add", "default", "via", "fd77:ffff::1", "dev", "eth0", "onlink")
        restart(node, **dict.fromkeys(("node.address", "control.listen", "transport.rails"), "auto"))
        assert "rail eth0 (the default route goes over it)" in node.log()
    for result in [trainer.result() for trainer in pure.start(MEET, argument=str(tmp_path / "master"))]:
        assert result["address"] == pure.nodes[0].address and result["sum"] == 2.0
    for node, command in zip(pure.nodes, usual, strict=True):
        node.daemon_command = command
        restart(node)


@pytest.mark.parametrize("addressed", [True, False], ids=["global", "link-local"])
def test_two_rails(addressed):
    if TRANSPORT and not addressed:
        pytest.skip("UCX knows no device of a link-local address")
    with Cluster(2, ("transport.flows_per_link=4",), ipv6=True) as cluster:
        add_cable(cluster, addressed)
        for node in cluster.nodes:
            restart(node, **{"transport.rails": "[eth0,eth1]"})
        expect_sums(cluster)
        assert all(rails_of_flows(node) == {"eth0", "eth1"} and has_only_v6(node) for node in cluster.nodes)
        first, second = cluster.nodes
        sent = first.run("cat", "/sys/class/net/eth1/statistics/tx_bytes")
        assert int(sent) > 1_000_000, sent
        # One of the rails is enough.
        second.run("ip", "link", "set", "eth1", "down")
        expect_sums(cluster)


def test_nodes_that_have_nothing_but_link_local_addresses():
    if TRANSPORT:
        pytest.skip("UCX knows no device of a link-local address")
    with Cluster(2, ("transport.flows_per_link=2",), ipv6=True) as cluster:
        add_cable(cluster, addressed=False)
        for node in cluster.nodes:
            restart(node, **{"transport.rails": "[eth1]", "node.address": "auto", "control.listen": "auto"})
        first, second = cluster.nodes
        address = f"{link_local_of(first, 'eth1')}%eth1"
        assert first.status()["node"]["address"] == address
        expect_sums(cluster, environment={"MASTER_ADDR": address})
        done = braidctl(second.socket, "check", "--json", "--peer", f"[{address}]:{CONTROL_PORT}")
        (told,) = json.loads(done.stdout)["peers"]
        assert all(check["good"] for check in told["checks"] if check["check"] in ("reach", "back", "flows"))
        (trainer,) = cluster.start(f"open_job(master_address='{address.replace('eth1', 'eth9')}')", nodes=[1])
        assert "this node has no device 'eth9' that could lead to it" in trainer.error()["text"]


def test_ucx_says_what_it_cannot_do():
    with Cluster(1, ("transport.tcp=native",), ipv6=True) as cluster:
        (node,) = cluster.nodes
        node.run("ip", "address", "del", f"{node.address}/64", "dev", "eth0")
        settings = {"node.address": "auto", "control.listen": "auto", "transport.tcp": "ucx", "metrics.address": "::1"}
        done = ran(with_settings(node.daemon_command, **settings))
        own = f"{link_local_of(node, 'eth0')}%eth0"
        said = done.stdout + done.stderr
        assert done.returncode != 0 and f"knows no link-local IPv6 address, and it has {own} alone" in said, said
        assert "set transport.tcp to native" in said


@contextlib.contextmanager
def both_families(*settings: str) -> Iterator[Cluster]:
    with Cluster(2, ("transport.flows_per_link=2", *settings)) as cluster:
        for number, node in enumerate(cluster.nodes, 1):
            node.run("sysctl", "-qw", "net.ipv6.conf.eth0.disable_ipv6=0")
            node.run("ip", "address", "add", f"fd78::{number}/64", "dev", "eth0", "nodad")
        yield cluster


@pytest.mark.transports
def test_a_node_with_both_families_names_the_one_it_wants(tmp_path):
    with both_families() as cluster:
        for number, node in enumerate(cluster.nodes, 1):
            everywhere = {"control.listen": "::", "metrics.address": "::"}
            restart(node, **{"node.address": f"fd78::{number}"}, **everywhere)
        expect_sums(cluster, environment={"MASTER_ADDR": "fd78::1"})
        assert all(has_only_v6(node) for node in cluster.nodes)
        for result in [trainer.result() for trainer in cluster.start(MEET, argument=str(tmp_path / "master"))]:
            assert result["address"] == "fd78::1" and result["sum"] == 2.0
        # `::` takes IPv4 as well.
        here, there = cluster.nodes
        for address in (here.address, "[fd78::1]"):
            assert "braid_build" in there.run("curl", "-sf", f"http://{address}:{METRICS_PORT}/metrics")
            told = json.loads(here.run(str(BRAIDCTL), "--host", f"{address}:{METRICS_PORT}", "status", "--json"))
            assert told["node"]["address"] == "fd78::1"
        (trainer, *_) = trainers = cluster.start("report(good=True) if RANK else open_job(world_size=1)")
        assert trainers[1].result()["good"]
        trainer.kill()
        done = braidctl(there.socket, "check", "--json", "--peer", here.address)
        (told,) = json.loads(done.stdout)["peers"]
        assert {one["check"]: one["good"] for one in told["checks"]}["reach"], told


def test_a_node_without_ipv6_is_told_what_would_be_right():
    with both_families() as cluster:
        first, second = cluster.nodes
        restart(first, **{"node.address": "fd78::1", "control.listen": "::"})
        second.run("ip", "address", "flush", "dev", "eth0")
        second.run("ip", "address", "add", f"{second.address}/24", "dev", "eth0")
        second.run("sysctl", "-qw", "net.ipv6.conf.eth0.disable_ipv6=1")
        (trainer,) = cluster.start("open_job(timeout=3)", nodes=[1], environment={"MASTER_ADDR": "fd78::1"})
        text = trainer.error()["text"]
        assert "this node has no IPv6 address: set node.address of both nodes to addresses of one family" in text, text
        # The other way: it is reached over IPv4, and its flows are asked for at IPv6.
        trainers = cluster.start("open_job(timeout=10)")
        texts = [trainer.error()["text"] for trainer in trainers]
        assert any("addresses of one family" in text for text in texts), texts


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("node.address=fe80::7", "--set node.address: 'fe80::7' is a link-local address"),
        ("node.address=fe80::7", "use fe80::7%eth0, with the name of its device"),
        ("control.listen=[2001:db8::7]:7410", "--set control.listen: '[2001:db8::7]:7410' has a port"),
        ("metrics.address=2001:db8::7%lo", "names a device, which only a link-local address (fe80::) needs"),
        ("node.address=fe80::7%eth9", "node.address: this machine has no device 'eth9'"),
        ("node.address=::", "node.address: :: is no address that other nodes reach"),
        ("metrics.address=2001:db8::7", "metrics.address: 2001:db8::7 is no address of this machine"),
    ],
)
def test_wrong_forms_are_named_with_what_would_be_right(setting, said):
    usual = ["--set", "client.group=", "--set", "client.socket=/tmp/x.sock"]
    done = ran([BRAIDD, "--check-config", *usual, "--set", setting])
    assert done.returncode != 0 and said in done.stdout + done.stderr, done.stdout + done.stderr
