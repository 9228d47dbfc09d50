# SPDX-License-Identifier: Apache-2.0
"""The systems: who starts each, and measures one repeat of one case."""

import argparse
import dataclasses
import os
import statistics
from collections.abc import Callable

from .. import cpu
from ..cluster import Cluster
from ..errors import Deadline
from ..group import Group, slowest
from ..paths import ROOT, VENV_PYTHON, Installation
from ..programs import Program
from . import figures, mpi, network
from .braid_system import Braid
from .cases import GLOO, Case


def make(name: str, cluster: Cluster, options: argparse.Namespace) -> "Braid | Workers":
    """start(), measure(case), close(); the first two raise SystemFailed."""
    if braid := options.installations.get(name):
        kind = BraidThroughTorch if options.through == "torch" else Braid
        return kind(name, cluster, options, braid)
    return Workers(name, cluster, options, _launch_gloo if name in GLOO else mpi.launch)


class Workers:
    """A system whose ranks are processes that stay up. They use no processor while others are measured."""

    flows = 0  # of braid, from a node to the next one

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
        cluster = self._cluster
        self._group = Group.of(
            cluster, lambda variables: self._launch(cluster, self.name, variables), cluster.world_size,
            self._options.timeout,
        )  # fmt: skip
        self.versions = self._group.versions

    def measure(self, case: Case) -> figures.Sample:
        deadline = Deadline(self._options.timeout)
        iterations = self._options.iterations
        self._group.ask({"case": dataclasses.asdict(case), "iterations": self._options.warmup}, deadline)
        pids = self._pids()
        sent = network.bytes_sent(self._cluster.nodes)
        before, machine = cpu.seconds_of(pids), cpu.Machine()
        answers = self._group.ask({"iterations": iterations}, deadline)
        used, busy = cpu.seconds_of(pids) - before, machine.busy_seconds()
        sent = network.bytes_sent(self._cluster.nodes) - sent
        network.expect_used(self._cluster.nodes, self._cluster.ranks_per_node, case, iterations, sent)
        seconds = slowest(answers, "seconds")
        return figures.Sample(statistics.median(seconds), figures.p99(seconds), used, busy)

    def _pids(self) -> list[int]:
        return cpu.processes_of(self.name, self._cluster.variable)

    def close(self) -> None:
        if self._group is not None:
            self._group.close()
            self._group = None


class BraidThroughTorch(Workers):
    """Its daemons are those of the cluster; braid-bench asks them what they are."""

    def __init__(self, name: str, cluster: Cluster, options: argparse.Namespace, braid: Installation):
        super().__init__(name, cluster, options, lambda *how: _launch_braid(braid, *how))
        self._bench = Braid(name, cluster, options, braid)

    def start(self) -> None:
        try:
            self._bench.start()
        finally:
            self._bench.close()
        self.flows = self._bench.flows
        super().start()
        self.versions = {**self._bench.versions, **self.versions}

    def _pids(self) -> list[int]:
        return super()._pids() + self._cluster.daemon_pids()


def _launch_gloo(cluster: Cluster, name: str, variables: dict[str, str]) -> list[Program]:
    """torch connects the ranks once more for each name of an interface."""
    own = {
        "GLOO_SOCKET_IFNAME": ",".join([cluster.nodes[0].interface] * GLOO[name]),
        "MASTER_PORT": _master_port(cluster, name),
    }
    return cluster.start_ranks(name, _worker("gloo"), **own, **variables)


def _launch_braid(
    braid: Installation, cluster: Cluster, name: str, variables: dict[str, str]
) -> list[Program]:
    own = {
        "PYTHONPATH": os.pathsep.join([os.path.join(ROOT, "bench"), braid.python]),
        "BRAID_COMPARE_PYTHON": braid.python,  # the folder that braid's Python package must come from
        "BRAID_LIBRARY": braid.library,
        "MASTER_PORT": _master_port(cluster, name),
    }
    return cluster.start_ranks(name, _worker("braid"), **own, **variables)


def _master_port(cluster: Cluster, name: str) -> str:
    """All systems stay up, so each has a port of its own."""
    names = list(GLOO)
    return str(cluster.state.master_port + (names.index(name) if name in names else len(names)))


def _worker(backend: str) -> list[str]:
    return [VENV_PYTHON, "-m", "measure.compare.torch_worker", backend]
