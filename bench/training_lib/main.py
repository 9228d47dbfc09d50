# SPDX-License-Identifier: Apache-2.0
"""The course of a run: the systems in turns, one seed of each."""

import argparse
import json
import shlex
import signal
import sys

from compare_lib import machine
from compare_lib.cluster import Cluster
from compare_lib.errors import EXIT_FAILED, EXIT_USAGE, CompareError, SystemFailed

from . import figures, options, requirements, table
from .runner import Runner
from .systems import System


def main(argv: list[str]) -> int:
    chosen = options.parse(argv)
    try:
        requirements.check(chosen)
    except CompareError as error:
        _say(str(error))
        return EXIT_USAGE
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    trainings = _Trainings(chosen)
    try:
        trainings.run()
    except CompareError as error:
        trainings.errors["cluster"] = str(error)
        _say(str(error))
    except KeyboardInterrupt:
        _say("interrupted")
        return 128 + signal.SIGINT
    report = trainings.report(["bench/train", *argv])
    print(table.of(report), flush=True)
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2, allow_nan=False)
            file.write("\n")
    return EXIT_FAILED if report["errors"] else 0


class _Trainings:
    def __init__(self, chosen: argparse.Namespace):
        self.errors: dict[str, str] = {}
        self._chosen = chosen
        self._seeds: dict[System, list[dict]] = {system: [] for system in chosen.systems}
        self._versions = machine.versions()
        self._load = [machine.load()]
        self._started = 0

    def run(self) -> None:
        cluster = Cluster(self._chosen, self._chosen.braid)
        try:
            for seed in range(1, self._chosen.seeds + 1):
                for system in self._chosen.systems:
                    cluster.check()
                    if system.text not in self.errors:
                        self._train(system, seed, cluster)
        finally:
            complaint = cluster.end()
            if complaint:
                self.errors["cluster"] = complaint
                _say(complaint)
        self._load.append(machine.load())

    def _train(self, system: System, seed: int, cluster: Cluster) -> None:
        """A system that fails keeps the seeds that it has trained."""
        self._started += 1
        runner = Runner(self._started, system, cluster, self._chosen)
        try:
            runner.start()
            self._versions |= runner.versions
            ranks = runner.train(seed)
            done = figures.of_seed(seed, ranks, cluster.ranks_per_node, self._chosen.target)
            self._seeds[system].append(done)
            _say(f"{system.text}: seed {seed} of {self._chosen.seeds}: {done['accuracy']:.2f} %")
        except SystemFailed as failure:
            self.errors[system.text] = str(failure)
            _say(f"{system.text} failed: {failure}")
        finally:
            runner.close()

    def report(self, command: list[str]) -> dict:
        chosen = self._chosen
        rows = [figures.row(system, seeds) for system, seeds in self._seeds.items()]
        plain = {system.text for system in chosen.systems if system.is_plain}
        figures.judge(rows, plain, self.errors, chosen.margin)
        names = ("dataset", "seeds", "steps", "batch_size", "learning_rate", "momentum", "hidden", "layers")
        names += ("target", "evaluate_every", "margin", "nodes", "ranks_per_node", "nic_mbit", "flow_mbit", "settings")
        return {
            "command": shlex.join(command),
            **{name: getattr(chosen, name) for name in names},
            "versions": self._versions,
            "load_average": self._load,
            "rows": rows,
            "errors": self.errors,
        }


def _say(text: str) -> None:
    print(f"train: {text}", file=sys.stderr, flush=True)
