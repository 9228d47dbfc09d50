# SPDX-License-Identifier: Apache-2.0
"""COMMAND, once per rank: its environment, its start, its end."""

import os
import signal
import subprocess

from . import processes
from .errors import ClusterError
from .state import Cluster, Node


class Rank:
    """One running COMMAND. Main thread only."""

    def __init__(self, number: int, process: subprocess.Popen):
        self.number = number
        self.process = process

    def exit_code(self) -> int:
        return processes.exit_code(self.process.returncode)


def common_environment(cluster: Cluster) -> dict[str, str]:
    """What every process of the cluster gets: the daemons, too."""
    env = dict(os.environ)
    env.pop("NOTIFY_SOCKET", None)  # "ready" is ours to tell a service manager, not a daemon's
    env[processes.MARKER] = cluster.id
    env["BRAID_CLUSTER_DIR"] = cluster.directory
    return env


def environment(cluster: Cluster, node: Node, local_rank: int, ranks_per_node: int) -> dict:
    env = common_environment(cluster)
    env.setdefault("OMP_NUM_THREADS", "1")
    env.update(
        RANK=str(node.index * ranks_per_node + local_rank),
        LOCAL_RANK=str(local_rank),
        LOCAL_WORLD_SIZE=str(ranks_per_node),
        WORLD_SIZE=str(len(cluster.nodes) * ranks_per_node),
        NODE_RANK=str(node.index),
        MASTER_ADDR=cluster.nodes[0].address,
        MASTER_PORT=str(cluster.master_port),
        BRAID_SOCKET=node.socket,
        BRAID_JOB=cluster.job,
        GLOO_SOCKET_IFNAME=node.interface,
    )
    return env


def start(cluster: Cluster, command: list[str], ranks_per_node: int, into: list[Rank]) -> None:
    """Appends each rank as soon as it runs, so that the caller can stop a half-started set."""
    for node in cluster.nodes:
        for local_rank in range(ranks_per_node):
            env = environment(cluster, node, local_rank, ranks_per_node)
            try:
                process = processes.spawn(
                    node.enter(command),
                    env=env,
                    death_signal=signal.SIGKILL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            except OSError as error:
                raise ClusterError(f"cannot run {command[0]}: {error.strerror}") from None
            into.append(Rank(int(env["RANK"]), process))
            node.ranks[env["RANK"]] = process.pid
    cluster.save()
