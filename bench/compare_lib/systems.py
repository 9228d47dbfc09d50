# SPDX-License-Identifier: Apache-2.0
"""The systems: how each is started, and how one repeat of one size is measured."""

import argparse
import os
from collections.abc import Callable

from . import cpu, figures, mpi, network
from .cluster import Cluster
from .control import Group
from .errors import Deadline
from .programs import Program
from .requirements import VENV_PYTHON
from .worker import SOCKET_VARIABLE


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
        sent = network.bytes_sent(self._cluster.nodes)
        before, machine = cpu.seconds_of(pids), cpu.Machine()
        answers = self._group.ask({"go": True}, deadline)
        used, busy = cpu.seconds_of(pids) - before, machine.busy_seconds()
        sent = network.bytes_sent(self._cluster.nodes) - sent
        network.expect_used(self._cluster.nodes, size, iterations, sent)
        seconds = figures.slowest([answer["seconds"] for answer in answers])
        return figures.Sample(figures.median(seconds), figures.p99(seconds), used, busy)

    def close(self) -> None:
        if self._group is not None:
            self._group.close()
            self._group = None


def launch_gloo(cluster: Cluster, name: str, variables: dict[str, str]) -> list[Program]:
    argv = [VENV_PYTHON, "-m", "compare_lib.gloo_worker"]
    return cluster.start_ranks(name, argv, **variables)


def make(name: str, cluster: Cluster, options: argparse.Namespace):
    """start(), measure(bytes), close(); the first two raise SystemFailed."""
    if name == "braid":
        from .braid_system import Braid

        return Braid(cluster, options)
    return Workers(name, cluster, options, launch_gloo if name == "gloo" else mpi.launch)
