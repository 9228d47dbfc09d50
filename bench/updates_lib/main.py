# SPDX-License-Identifier: Apache-2.0
"""The course of a run: the systems in turns."""

import argparse

from compare_lib import course
from compare_lib.cluster import Cluster
from compare_lib.errors import CompareError, SystemFailed

from . import figures, options, requirements, table
from .runner import Runner
from .systems import SYNC, System


def main(argv: list[str]) -> int:
    chosen = options.parse(argv)
    return _RUNS[chosen.command](chosen).run(argv, requirements.check, table.of)


class _Run(course.Run):
    """What all commands have in common: a cluster, and processes that are asked for one thing after the other."""

    def __init__(self, chosen: argparse.Namespace):
        super().__init__("bench/updates", chosen)

    def measure(self) -> None:
        cluster = Cluster(self._chosen, self._chosen.braid)
        runner = Runner(cluster, self._chosen)
        try:
            self._measure(cluster, runner)
        finally:
            self.versions |= runner.versions
            runner.close()
            self.end(cluster)

    def _measure(self, cluster: Cluster, runner: Runner) -> None:
        raise NotImplementedError

    def _common(self, *names: str) -> dict:
        wanted = (*names, "nodes", "nic_mbit", "flow_mbit", "settings")
        return {"kind": self._chosen.command, **{name: getattr(self._chosen, name) for name in wanted}}


class _Accuracy(_Run):
    def __init__(self, chosen: argparse.Namespace):
        super().__init__(chosen)
        self._trained: dict[System, list[dict]] = {system: [] for system in chosen.systems}

    def _measure(self, cluster: Cluster, runner: Runner) -> None:
        for seed in range(1, self._chosen.seeds + 1):
            for system in self._chosen.systems:
                cluster.check()
                if system.text not in self.errors:
                    self._train(system, seed, runner)

    def _train(self, system: System, seed: int, runner: Runner) -> None:
        names = ("dataset", "steps", "warmup_steps", "batch_size", "learning_rate", "momentum", "hidden")
        task = {name: getattr(self._chosen, name) for name in (*names, "evaluate_every")}
        try:
            ranks = runner.ask({"kind": "train", "system": system.text, "seed": seed, **task})
        except SystemFailed as failure:
            self.fail(system.text, failure)
            return
        done = figures.of_training(seed, ranks)
        self._trained[system].append(done)
        self.say(f"{system.text}: seed {seed} of {self._chosen.seeds}: {done['accuracy']:.2f} %")

    def report(self) -> dict:
        names = ("dataset", "seeds", "steps", "warmup_steps", "batch_size", "learning_rate", "momentum", "hidden")
        rows = figures.training_rows(self._trained, self.errors, self._chosen.margin)
        return {**self._common(*names, "evaluate_every", "margin"), "rows": rows}


class _Steps(_Run):
    def __init__(self, chosen: argparse.Namespace):
        super().__init__(chosen)
        self._communication_seconds: float | None = None
        self._parts: list[dict] = []

    def _measure(self, cluster: Cluster, runner: Runner) -> None:
        sync = self._chosen.systems[0]
        turns = [self._turn(sync, 0.0, cluster, runner) for _ in range(self._chosen.rounds)]
        if None in turns:
            raise CompareError("without sync there is nothing to compare with")
        seconds = figures.median_of(turns, "pass_seconds")
        self._communication_seconds = seconds
        self.say(f"communication of sync: {1e3 * seconds:.0f} ms")
        for ratio in self._chosen.communication:
            compute = None if ratio == options.REAL else seconds / ratio
            turns = self._turns(compute, cluster, runner)
            rows = figures.step_rows(turns, compute, seconds, self._chosen.nodes)
            self._parts.append({"communication": ratio, "compute_seconds": compute, "rows": rows})

    def _turns(self, compute: float | None, cluster: Cluster, runner: Runner) -> dict[System, list[dict]]:
        made: dict[System, list[dict]] = {system: [] for system in self._chosen.systems}
        for _ in range(self._chosen.rounds):
            for system, turns in made.items():
                cluster.check()
                if system.text not in self.errors and (turn := self._turn(system, compute, cluster, runner)):
                    turns.append(turn)
        return made

    def _turn(self, system: System, compute: float | None, cluster: Cluster, runner: Runner) -> dict | None:
        task = {
            "kind": "steps",
            "system": system.text,
            "compute_seconds": compute,
            "trace": self._chosen.trace,
            "steps": max(self._chosen.steps, system.cycle_steps),
            "settling_steps": self._chosen.settling_steps,
            "daemons": [[node.address, node.daemon_pid] for node in cluster.nodes],
        }
        try:
            turn = figures.of_turn(runner.ask(task))
        except SystemFailed as failure:
            self.fail(system.text, failure)
            return None
        self.say(f"{system.text}: {1e3 * turn['step_seconds']:.0f} ms a step")
        return turn

    def report(self) -> dict:
        names = ("rounds", "steps", "settling_steps", "trace")
        return {
            **self._common(*names),
            "communication_seconds": self._communication_seconds,
            "parts": self._parts,
        }


class _Timeline(_Run):
    def __init__(self, chosen: argparse.Namespace):
        super().__init__(chosen)
        self._communication_seconds: float | None = None
        self._parts: list[dict] = []

    def _measure(self, cluster: Cluster, runner: Runner) -> None:
        daemons = [[node.address, node.daemon_pid] for node in cluster.nodes]
        alone = {"kind": "steps", "system": SYNC, "compute_seconds": 0.0, "daemons": daemons}
        seconds = figures.of_turn(runner.ask({**alone, **self._steps()}))["pass_seconds"]
        self._communication_seconds = seconds
        task = {"kind": "timeline", "braidctl": self._chosen.braid.program("braidctl"), **self._steps()}
        for system in self._chosen.systems:
            cluster.check()
            try:
                computing = seconds / self._chosen.communication
                ranks = runner.ask({**task, "system": system.text, "compute_seconds": computing})
            except SystemFailed as failure:
                self.fail(system.text, failure)
                continue
            self._parts.append({"system": system.text, **ranks[0]})

    def _steps(self) -> dict:
        return {name: getattr(self._chosen, name) for name in ("trace", "steps", "settling_steps")}

    def report(self) -> dict:
        names = ("communication", "steps", "settling_steps", "trace")
        return {
            **self._common(*names),
            "communication_seconds": self._communication_seconds,
            "parts": self._parts,
        }


_RUNS = {options.ACCURACY: _Accuracy, options.STEPS: _Steps, options.TIMELINE: _Timeline}

