# SPDX-License-Identifier: Apache-2.0
"""The processes of all systems, one per rank: they do one task after the other, each in a job of its own."""

import argparse
import os

from compare_lib.cluster import Cluster
from compare_lib.control import Group
from compare_lib.errors import Deadline, SystemFailed
from compare_lib.paths import ROOT
from compare_lib.requirements import VENV_PYTHON
from compare_lib.worker import SOCKET_VARIABLE

_MARK = "updates"


class Runner:
    """ask() as often as wanted, then close(). After a failure the next ask() has new processes. Main thread only."""

    def __init__(self, cluster: Cluster, options: argparse.Namespace):
        self.versions: dict[str, str] = {}
        self._cluster, self._options = cluster, options
        self._group: Group | None = None
        self._tasks = 0

    def ask(self, task: dict) -> list[dict]:
        """What each rank answers, in their order. Raises SystemFailed."""
        self._tasks += 1
        port = self._cluster.state.master_port + self._tasks
        try:
            if self._group is None:
                self._start()
            answers = self._group.ask({**task, "port": port}, Deadline(self._options.timeout))
        except SystemFailed:
            self.close()
            raise
        return sorted(answers, key=lambda answer: answer["rank"])

    def _start(self) -> None:
        path = os.path.join(self._cluster.state.directory, f"updates{self._tasks}.sock")
        self._group = Group(path)
        folders = [os.path.join(ROOT, name) for name in ("bench", "python", "examples")]
        variables = {
            "PYTHONPATH": os.pathsep.join(folders),
            "BRAID_LIBRARY": self._options.braid.library,
            # Not those of the caller's environment.
            "BRAID_CODEC": "",
            "BRAID_UPDATE": "",
            "BRAID_KEEP_BUCKETS": "0",
            SOCKET_VARIABLE: path,
        }
        argv = [VENV_PYTHON, "-m", "updates_lib.worker"]
        programs = self._cluster.start_ranks(_MARK, argv, **variables)
        said = self._group.gather(programs, self._cluster.world_size, Deadline(self._options.timeout))
        self.versions = said[0]["versions"]

    def close(self) -> None:
        if self._group is not None:
            self._group.close()
            self._group = None
