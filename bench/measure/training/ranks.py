# SPDX-License-Identifier: Apache-2.0
"""The processes of the systems, one per rank and backend: they do one task after the other, each in its own job."""

import os

from ..cluster import Cluster
from ..errors import Deadline, SystemFailed
from ..group import Group
from ..paths import ROOT, VENV_PYTHON, Installation
from ..programs import Program
from .systems import BRAID, System


class Ranks:
    """ask() as often as wanted, then close(). After a failure the next ask() has new processes. Main thread only."""

    def __init__(self, cluster: Cluster, braid: Installation | None, timeout_s: float):
        self.versions: dict[str, str] = {}
        self._cluster, self._braid, self._timeout_s = cluster, braid, timeout_s
        self._groups: dict[str, Group] = {}  # by backend
        self._tasks = 0

    def ask(self, system: System, task: dict) -> list[dict]:
        """What each rank answers, in their order. Raises SystemFailed."""
        self._tasks += 1
        backend = system.backend
        if backend not in self._groups:
            self._groups[backend] = self._start(backend)
            self.versions |= self._groups[backend].versions
        whole = {**task, "system": str(system), "port": self._cluster.state.master_port + self._tasks}
        try:
            answers = self._groups[backend].ask(whole, Deadline(self._timeout_s))
        except SystemFailed:
            self._groups.pop(backend).close()
            raise
        return sorted(answers, key=lambda answer: answer["rank"])

    def _start(self, backend: str) -> Group:
        own = {
            "PYTHONPATH": os.pathsep.join(os.path.join(ROOT, folder) for folder in ("bench", "python")),
            # Not those of the caller's environment.
            "BRAID_UPDATE": "",
            "BRAID_KEEP_BUCKETS": "0",
        }
        if backend == BRAID:
            own |= {"BRAID_ENABLE": "1", "BRAID_LIBRARY": self._braid.library}

        def launch(variables: dict[str, str]) -> list[Program]:
            argv = [VENV_PYTHON, "-m", "measure.training.worker", backend]
            return self._cluster.start_ranks(backend, argv, **own, **variables)

        return Group.of(self._cluster, launch, self._cluster.world_size, self._timeout_s)

    def close(self) -> None:
        for group in self._groups.values():
            group.close()
        self._groups.clear()
