# SPDX-License-Identifier: Apache-2.0
"""braid and gloo as users of torch.distributed have them: a process per rank, all copies included."""

import argparse
import os

from .braid_system import Braid
from .cluster import Cluster
from .paths import ROOT, Installation
from .programs import Program
from .requirements import VENV_PYTHON
from .worker import PYTHON_VARIABLE
from .workers import Workers


class BraidThroughTorch(Workers):
    """Its daemons are those of the cluster; braid-bench asks them what they are."""

    def __init__(self, name: str, cluster: Cluster, options: argparse.Namespace, braid: Installation):
        super().__init__(name, cluster, options, lambda *how: _launch_braid(braid, *how))
        self.flows = 0  # from a node to the next one
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


def launch_gloo(cluster: Cluster, name: str, variables: dict[str, str]) -> list[Program]:
    return cluster.start_ranks(name, _worker("gloo"), **variables)


def _launch_braid(
    braid: Installation, cluster: Cluster, name: str, variables: dict[str, str]
) -> list[Program]:
    own = {
        "PYTHONPATH": os.pathsep.join([os.path.join(ROOT, "bench"), braid.python]),
        PYTHON_VARIABLE: braid.python,
        "BRAID_LIBRARY": braid.library,
        "MASTER_PORT": str(cluster.state.master_port + 1),  # the other one is gloo's
    }
    return cluster.start_ranks(name, _worker("braid"), **own, **variables)


def _worker(backend: str) -> list[str]:
    return [VENV_PYTHON, "-m", "compare_lib.torch_worker", backend]
