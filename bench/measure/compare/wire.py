# SPDX-License-Identifier: Apache-2.0
"""What the wire can do: every node sends to its successor, all at the same time."""

import dataclasses
import json
import statistics

from ..cluster import Cluster
from ..errors import Deadline, SystemFailed
from ..programs import Program, last_words, stop_all

SECONDS = 2
CONNECTIONS_WITHOUT_BRAID = 8
_PORT = 5201
_MARK = "wire"
_DEADLINE_S = 30.0


@dataclasses.dataclass(frozen=True)
class Wire:
    """One measurement."""

    connections: int
    gbit_per_second: list[float]  # received from each node

    @property
    def mean(self) -> float:
        return statistics.fmean(self.gbit_per_second)


def measure(cluster: Cluster, connections: int) -> Wire:
    deadline = Deadline(_DEADLINE_S)
    programs: list[Program] = []
    try:
        servers = [_start_server(cluster, node, programs) for node in cluster.nodes]
        for server in servers:
            _wait_until_it_listens(server, deadline)
        successors = cluster.nodes[1:] + cluster.nodes[:1]
        clients = []
        for node, successor in zip(cluster.nodes, successors, strict=True):
            argv = ["iperf3", "-J", "-c", successor.address, "-p", str(_PORT)]
            argv += ["-P", str(connections), "-t", str(SECONDS), "-i", "0"]
            clients.append(cluster.start(node, _MARK, argv))
            programs.append(clients[-1])
        rates = [parse("".join(client.lines(deadline))) for client in clients]
    except (ValueError, KeyError, TypeError) as error:
        raise SystemFailed(f"iperf3: {error}\n{last_words(programs)}") from None
    finally:
        stop_all(programs, grace_s=0.5)
    return Wire(connections, rates)


def _start_server(cluster: Cluster, node, programs: list[Program]) -> Program:
    argv = ["iperf3", "-s", "-1", "-B", node.address, "-p", str(_PORT)]
    argv += ["-i", "0", "--forceflush"]
    programs.append(cluster.start(node, _MARK, argv))
    return programs[-1]


def _wait_until_it_listens(server: Program, deadline: Deadline) -> None:
    for line in server.lines(deadline):
        if "listening" in line:
            return
    raise ValueError("the server does not listen")


def parse(text: str) -> float:
    """Gbit/s that arrived, from what iperf3 -J said."""
    said = json.loads(text)
    if "error" in said:
        raise ValueError(said["error"])
    return said["end"]["sum_received"]["bits_per_second"] / 1e9
