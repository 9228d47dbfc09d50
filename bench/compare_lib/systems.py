# SPDX-License-Identifier: Apache-2.0
"""The systems: how each is started, and how one repeat of one size is measured."""

import argparse
import os
from collections.abc import Callable

from . import cpu, figures
from .cluster import Cluster
from .control import Group
from .errors import Deadline
from .programs import Program
from .requirements import SYSTEM_PYTHON, VENV_PYTHON
from .worker import SOCKET_VARIABLE

_ENTER_NODE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "enter_node.sh")


class Workers:
    """A peer whose processes stay up, and wait without using a processor while others are measured."""

    def __init__(
        self,
        name: str,
        cluster: Cluster,
        options: argparse.Namespace,
        launch: Callable[[Cluster, str, dict[str, str]], list[Program]],
    ):
        self.name = name
        self.versions: dict[str, str] = {}
        self._cluster, self._options, self._launch = cluster, options, launch
        self._group: Group | None = None

    def start(self) -> None:
        path = os.path.join(self._cluster.state.directory, f"{self.name}.sock")
        self._group = Group(path)
        programs = self._launch(self._cluster, self.name, {SOCKET_VARIABLE: path})
        deadline = Deadline(self._options.timeout)
        said = self._group.gather(programs, self._cluster.world_size, deadline)
        self.versions = said[0]["versions"]

    def measure(self, size: int) -> figures.Sample:
        deadline = Deadline(self._options.timeout)
        iterations = self._options.iterations
        task = {"bytes": size, "warmup": self._options.warmup, "iterations": iterations}
        self._group.ask(task, deadline)
        pids = cpu.processes_of(self.name, self._cluster.variable)
        before, machine = cpu.seconds_of(pids), cpu.Machine()
        answers = self._group.ask({"go": True}, deadline)
        used, busy = cpu.seconds_of(pids) - before, machine.busy_seconds()
        seconds = figures.slowest([answer["seconds"] for answer in answers])
        return figures.Sample(figures.median(seconds), figures.p99(seconds), used, busy)

    def close(self) -> None:
        if self._group is not None:
            self._group.close()
            self._group = None


def launch_gloo(cluster: Cluster, name: str, variables: dict[str, str]) -> list[Program]:
    argv = [VENV_PYTHON, "-m", "compare_lib.gloo_worker"]
    return cluster.start_ranks(name, argv, **variables)


def launch_openmpi(cluster: Cluster, name: str, variables: dict[str, str]) -> list[Program]:
    """mpirun on the first node; it reaches the others as it would with ssh."""
    first = cluster.nodes[0]
    hosts = ",".join(f"{node.address}:{cluster.ranks_per_node}" for node in cluster.nodes)
    parameters = {
        "plm_rsh_agent": _ENTER_NODE,
        "pml": "ob1",
        "btl": "tcp,self,vader",
        "btl_tcp_if_include": first.interface,
        "oob_tcp_if_include": first.interface,
        # The nodes share this machine's cores: a rank that waits must let the others run. Open MPI would find
        # out by itself if it did not believe that each node has all the cores.
        "mpi_yield_when_idle": "1",
    }
    if name == "openmpi-links4":
        parameters["btl_tcp_links"] = "4"
    argv = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', first.name]
    argv += ["mpirun", "--allow-run-as-root", "--bind-to", "none", "--host", hosts]
    argv += ["-np", str(cluster.world_size)]
    argv += [part for key, value in parameters.items() for part in ("--mca", key, value)]
    argv += [SYSTEM_PYTHON, "-m", "compare_lib.openmpi_worker"]
    nodes = " ".join(f"{node.address}={node.namespace}={node.name}" for node in cluster.nodes)
    return [cluster.start(first, name, argv, BRAID_COMPARE_NODES=nodes, **variables)]


def make(name: str, cluster: Cluster, options: argparse.Namespace):
    """start(), measure(bytes), close(); the first two raise SystemFailed."""
    if name == "braid":
        from .braid_system import Braid

        return Braid(cluster, options)
    return Workers(name, cluster, options, launch_gloo if name == "gloo" else launch_openmpi)
