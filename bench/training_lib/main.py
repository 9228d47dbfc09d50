# SPDX-License-Identifier: Apache-2.0
"""The course of a run: the systems in turns, one seed of each."""

import argparse

from compare_lib import course
from compare_lib.cluster import Cluster
from compare_lib.errors import SystemFailed

from . import figures, options, requirements, table
from .runner import Runner
from .systems import System


def main(argv: list[str]) -> int:
    return _Trainings(options.parse(argv)).run(argv, requirements.check, table.of)


class _Trainings(course.Run):
    def __init__(self, chosen: argparse.Namespace):
        super().__init__("bench/train", chosen)
        self._seeds: dict[System, list[dict]] = {system: [] for system in chosen.systems}
        self._started = 0

    def measure(self) -> None:
        cluster = Cluster(self._chosen, self._chosen.braid)
        try:
            for seed in range(1, self._chosen.seeds + 1):
                for system in self._chosen.systems:
                    cluster.check()
                    if system.text not in self.errors:
                        self._train(system, seed, cluster)
        finally:
            self.end(cluster)

    def _train(self, system: System, seed: int, cluster: Cluster) -> None:
        """A system that fails keeps the seeds that it has trained."""
        self._started += 1
        runner = Runner(self._started, system, cluster, self._chosen)
        try:
            runner.start()
            self.versions |= runner.versions
            ranks = runner.train(seed)
            done = figures.of_seed(seed, ranks, cluster.ranks_per_node, self._chosen.target)
            self._seeds[system].append(done)
            self.say(f"{system.text}: seed {seed} of {self._chosen.seeds}: {done['accuracy']:.2f} %")
        except SystemFailed as failure:
            self.fail(system.text, failure)
        finally:
            runner.close()

    def report(self) -> dict:
        chosen = self._chosen
        rows = [figures.row(system, seeds) for system, seeds in self._seeds.items()]
        plain = {system.text for system in chosen.systems if system.is_plain}
        figures.judge(rows, plain, self.errors, chosen.margin)
        names = ("dataset", "seeds", "steps", "batch_size", "learning_rate", "momentum", "hidden", "layers")
        names += ("target", "evaluate_every", "margin", "nodes", "ranks_per_node", "nic_mbit", "flow_mbit", "settings")
        return {**{name: getattr(chosen, name) for name in names}, "rows": rows}
