# SPDX-License-Identifier: Apache-2.0
"""A system whose ranks are processes that stay up."""

import argparse
import dataclasses
import os
from collections.abc import Callable

from . import cpu, figures, network
from .cases import Case
from .cluster import Cluster
from .control import Group
from .errors import Deadline
from .programs import Program
from .worker import SOCKET_VARIABLE


class Workers:
    """Its processes wait without using a processor while others are measured."""

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

    def measure(self, case: Case) -> figures.Sample:
        deadline = Deadline(self._options.timeout)
        iterations = self._options.iterations
        task = {"case": dataclasses.asdict(case), "warmup": self._options.warmup, "iterations": iterations}
        self._group.ask(task, deadline)
        pids = self._pids()
        sent = network.bytes_sent(self._cluster.nodes)
        before, machine = cpu.seconds_of(pids), cpu.Machine()
        answers = self._group.ask({"go": True}, deadline)
        used, busy = cpu.seconds_of(pids) - before, machine.busy_seconds()
        sent = network.bytes_sent(self._cluster.nodes) - sent
        network.expect_used(self._cluster.nodes, self._cluster.ranks_per_node, case, iterations, sent)
        seconds = figures.slowest([answer["seconds"] for answer in answers])
        return figures.Sample(figures.median(seconds), figures.p99(seconds), used, busy)

    def _pids(self) -> list[int]:
        return cpu.processes_of(self.name, self._cluster.variable)

    def close(self) -> None:
        if self._group is not None:
            self._group.close()
            self._group = None
