# SPDX-License-Identifier: Apache-2.0
"""The emulated network: one namespace per node, joined by a bridge in a namespace of its own.

    node 0 [eth0] ══ veth ══ [p0] ┐
    node 1 [eth0] ══ veth ══ [p1] ┼ br0   (namespace ...-sw)
    node 2 [eth0] ══ veth ══ [p2] ┘

With delay or loss, the bridge and the veth pairs give way to delay_line.py. Nothing is ever created
in the host's own network.
"""

import ipaddress
import os
import socket
import time
from collections.abc import Callable

from . import names
from .commands import run
from .errors import ClusterError, NotPermitted
from .state import Cluster

INTERFACE = "eth0"
NODES_MAX = 250  # host numbers of one /24
_CLUSTERS_MAX = 250
_CARRIER_S = 60


def choose_index(used: set[int], ports: list[int], loopback: bool) -> int:
    """The first subnet that no other cluster uses; on loopback, one whose ports are free too."""
    for index in range(_CLUSTERS_MAX):
        if index in used:
            continue
        if not loopback or all(_port_is_free(loopback_address(index, 0), port) for port in ports):
            return index
    raise ClusterError(f"no free subnet: {len(used)} clusters are running, at most {_CLUSTERS_MAX}")


def namespace_address(index: int, node: int) -> str:
    return f"10.77.{index}.{node + 1}"


def namespace_address_v6(index: int, node: int) -> str:
    return str(ipaddress.IPv6Address(f"fd77:{index:x}::{node + 1:x}"))


def loopback_address(index: int, node: int) -> str:
    return f"127.0.{index}.{node + 1}"


def _port_is_free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def free_port_on(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


def create(cluster: Cluster, connect: Callable[[Cluster], None] | None = None) -> None:
    """Makes the namespaces, and what connects them: the bridge and the veth pairs, or what `connect`
    makes. What it made is undone by name."""
    try:
        for name in (cluster.switch, *(node.namespace for node in cluster.nodes)):
            _add_namespace(name, cluster.ipv6 and name != cluster.switch)
        if connect is None:
            _connect_by_bridge(cluster)
    except ClusterError as error:
        if os.geteuid() != 0 or "not permitted" in str(error) or "denied" in str(error):
            raise NotPermitted(
                "network namespaces are not allowed here: they need root with CAP_SYS_ADMIN and "
                f"CAP_NET_ADMIN ({error})"
            ) from None
        raise
    if connect is not None:
        connect(cluster)
    for node in cluster.nodes:
        _ip_script(
            node.namespace,
            [
                "link set lo up",
                f"addr add {node.address}/{'64' if cluster.ipv6 else '24'} dev {node.interface}"
                + (" nodad" if cluster.ipv6 else ""),
                f"link set {node.interface} up",
            ],
        )
    if connect is None:
        _await_carriers(cluster)


def _await_carriers(cluster: Cluster) -> None:
    """The kernel says later that a link is there: a second or more on a busy machine. A daemon that
    starts before that has no rail."""
    end = time.monotonic() + _CARRIER_S
    for node in cluster.nodes:
        while "NO-CARRIER" in run(["ip", "-n", node.namespace, "link", "show", node.interface]):
            if time.monotonic() >= end:
                raise ClusterError(f"{node.namespace}: {node.interface} has no carrier after {_CARRIER_S} s")
            time.sleep(0.01)


def _connect_by_bridge(cluster: Cluster) -> None:
    script = ["link set lo up", "link add br0 type bridge stp_state 0 forward_delay 0"]
    for node in cluster.nodes:
        port = f"p{node.index}"
        script.append(
            f"link add {port} type veth peer name {node.interface} netns {node.namespace}"
        )
        script.append(f"link set {port} master br0 up")
    script.append("link set br0 up")
    _ip_script(cluster.switch, script)


def _add_namespace(name: str, ipv6: bool) -> None:
    run(["ip", "netns", "add", name])
    # Neighbour discovery of an address family that nobody uses would blur the measurements.
    # It may fail where /proc/sys is read-only, which does no harm.
    quiet = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6"
    if ipv6:  # nobody else has these addresses: they can be used at once
        quiet = "echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad"
    run(["ip", "netns", "exec", name, "sh", "-c", quiet], may_fail=True)


def _ip_script(namespace: str, lines: list[str]) -> None:
    run(["ip", "-n", namespace, "-batch", "-"], script="\n".join(lines) + "\n")


def delete_namespaces(cluster_id: str) -> list[str]:
    """Deletes the cluster's namespaces, and with them its links; returns those that remained."""
    for name in names.namespaces_of(cluster_id):
        run(["ip", "netns", "del", name], may_fail=True)  # somebody else may have been faster
    return names.namespaces_of(cluster_id)
