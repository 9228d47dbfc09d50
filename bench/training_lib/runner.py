# SPDX-License-Identifier: Apache-2.0
"""The processes of one system, one per rank, for as many trainings as are asked for."""

import argparse
import os

from compare_lib.cluster import Cluster
from compare_lib.control import Group
from compare_lib.errors import Deadline
from compare_lib.paths import ROOT
from compare_lib.requirements import VENV_PYTHON
from compare_lib.worker import SOCKET_VARIABLE

from .systems import BRAID, System


class Runner:
    """start(), train(seed), close(); the first two raise SystemFailed. Main thread only."""

    def __init__(self, number: int, system: System, cluster: Cluster, options: argparse.Namespace):
        self.versions: dict[str, str] = {}
        self._number, self._system = number, system
        self._cluster, self._options = cluster, options
        self._group: Group | None = None

    def start(self) -> None:
        path = os.path.join(self._cluster.state.directory, f"train{self._number}.sock")
        self._group = Group(path)
        argv = [VENV_PYTHON, "-m", "training_lib.worker", self._system.backend]
        argv += ["--hook", self._system.hook] if self._system.hook else []
        programs = self._cluster.start_ranks(
            self._system.text, argv, **self._variables(), **{SOCKET_VARIABLE: path}
        )
        deadline = Deadline(self._options.timeout)
        said = self._group.gather(programs, self._cluster.world_size, deadline)
        self.versions = said[0]["versions"]

    def _variables(self) -> dict[str, str]:
        """Also what is not to come from the caller's environment."""
        folders = [os.path.join(ROOT, name) for name in ("bench", "python", "examples")]
        variables = {
            "PYTHONPATH": os.pathsep.join(folders),
            "MASTER_PORT": str(self._cluster.state.master_port + self._number),
            "BRAID_CODEC": self._system.codec,
            "BRAID_KEEP_BUCKETS": "0",
        }
        if self._system.backend == BRAID:
            variables |= {"BRAID_ENABLE": "1", "BRAID_LIBRARY": self._options.braid.library}
        return variables

    def train(self, seed: int) -> list[dict]:
        """What each rank has measured."""
        chosen, system = self._options, self._system
        task = {
            "seed": seed,
            "dataset": chosen.dataset,
            "steps": chosen.steps,
            "batch_size": chosen.batch_size,
            "hidden": chosen.hidden,
            "layers": chosen.layers,
            "learning_rate": _first(system.learning_rate, chosen.learning_rate),
            "momentum": _first(system.momentum, chosen.momentum),
            "bucket_mib": system.bucket_mib,
            "evaluate_every": chosen.evaluate_every,
        }
        answers = self._group.ask(task, Deadline(chosen.timeout))
        return sorted(answers, key=lambda answer: answer["rank"])

    def close(self) -> None:
        if self._group is not None:
            self._group.close()
            self._group = None


def _first(own: float | None, common: float) -> float:
    return common if own is None else own
