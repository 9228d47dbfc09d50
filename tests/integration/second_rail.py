# SPDX-License-Identifier: Apache-2.0
"""Two nodes with a second cable between them: eth1 is a rail as well."""

import contextlib
import signal
from collections.abc import Iterator

from real_cluster import Cluster, until


@contextlib.contextmanager
def two_rail_cluster(*settings: str) -> Iterator[Cluster]:
    with Cluster(2, settings) as cluster:
        first, second = cluster.nodes
        first.run("ip", "link", "add", "eth1", "type", "veth", "peer", "eth1", "netns", second.namespace)
        for number, node in enumerate(cluster.nodes, 1):
            node.run("ip", "addr", "add", f"10.78.77.{number}/24", "dev", "eth1")
            node.run("ip", "link", "set", "eth1", "up")
        for node in cluster.nodes:  # a rail without a carrier comes later
            until(
                lambda node=node: "UP" in node.run("ip", "-br", "link", "show", "eth1").split(), "the cable is in"
            )
            node.daemon_command = [
                "transport.rails=[eth0,eth1]" if word.startswith("transport.rails=") else word
                for word in node.daemon_command
            ]
            node.signal(signal.SIGKILL)
            cluster.wait_until_gone(node)
            node.restart()
        yield cluster
