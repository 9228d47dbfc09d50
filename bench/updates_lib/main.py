# SPDX-License-Identifier: Apache-2.0
"""The course of a run: the systems in turns."""

import argparse
import json
import shlex
import signal
import sys

import drawing
from compare_lib import machine
from compare_lib.cluster import Cluster
from compare_lib.errors import EXIT_FAILED, EXIT_USAGE, CompareError, SystemFailed

from . import drawn, figures, options, requirements, table
from .runner import Runner
from .systems import SYNC, System


def main(argv: list[str]) -> int:
    chosen = options.parse(argv)
    if chosen.command == options.TOGETHER:
        return _put_together(chosen)
    try:
        requirements.check(chosen)
    except CompareError as error:
        _say(str(error))
        return EXIT_USAGE
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    run = _RUNS[chosen.command](chosen)
    try:
        run.run()
    except CompareError as error:
        run.errors["cluster"] = str(error)
        _say(str(error))
    except KeyboardInterrupt:
        _say("interrupted")
        return 128 + signal.SIGINT
    report = {"command": shlex.join(["bench/updates", *argv]), **run.report()}
    if chosen.command == options.TIMELINE and report["parts"]:
        try:
            _draw(report, chosen)
        except (drawing.DrawingError, OSError) as error:
            report["errors"]["picture"] = str(error)
            _say(str(error))
    print(table.of(report), flush=True)
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2, allow_nan=False)
            file.write("\n")
    return EXIT_FAILED if report["errors"] else 0


class _Run:
    """What both commands have in common: a cluster, and processes that are asked for one thing after the other."""

    def __init__(self, chosen: argparse.Namespace):
        self.errors: dict[str, str] = {}
        self._chosen = chosen
        self._versions = machine.versions()
        self._load = [machine.load()]

    def run(self) -> None:
        cluster = Cluster(self._chosen, self._chosen.braid)
        runner = Runner(cluster, self._chosen)
        try:
            self._measure(cluster, runner)
        finally:
            self._versions |= runner.versions
            runner.close()
            complaint = cluster.end()
            if complaint:
                self.errors["cluster"] = complaint
                _say(complaint)
        self._load.append(machine.load())

    def _measure(self, cluster: Cluster, runner: Runner) -> None:
        raise NotImplementedError

    def _fail(self, system: System, failure: SystemFailed) -> None:
        """The others go on."""
        self.errors[system.text] = str(failure)
        _say(f"{system.text} failed: {failure}")

    def _common(self, *names: str) -> dict:
        wanted = (*names, "nodes", "nic_mbit", "flow_mbit", "settings")
        return {
            "kind": self._chosen.command,
            **{name: getattr(self._chosen, name) for name in wanted},
            "versions": self._versions,
            "load_average": self._load,
            "errors": self.errors,
        }


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
            self._fail(system, failure)
            return
        done = figures.of_training(seed, ranks)
        self._trained[system].append(done)
        _say(f"{system.text}: seed {seed} of {self._chosen.seeds}: {done['accuracy']:.2f} %")

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
        _say(f"communication of sync: {1e3 * seconds:.0f} ms")
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
            self._fail(system, failure)
            return None
        _say(f"{system.text}: {1e3 * turn['step_seconds']:.0f} ms a step")
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
                self._fail(system, failure)
                continue
            self._parts.append({"system": system.text, **ranks[0]})

    def _steps(self) -> dict:
        return {name: getattr(self._chosen, name) for name in ("trace", "steps", "settling_steps")}

    def report(self) -> dict:
        names = ("communication", "steps", "settling_steps", "trace", "picture")
        return {
            **self._common(*names),
            "communication_seconds": self._communication_seconds,
            "parts": self._parts,
        }


_RUNS = {options.ACCURACY: _Accuracy, options.STEPS: _Steps, options.TIMELINE: _Timeline}


def _draw(report: dict, chosen: argparse.Namespace) -> None:
    figure = drawn.figure_of(report["parts"], table.heading(report))
    with open(chosen.picture, "w", encoding="utf-8") as file:
        file.write(drawing.svg(figure, chosen.braid.program("braidctl")))


def _put_together(chosen: argparse.Namespace) -> int:
    with open(chosen.accuracy, encoding="utf-8") as file:
        accuracy = json.load(file)
    parts = []
    for path in chosen.steps:
        with open(path, encoding="utf-8") as file:
            parts += json.load(file)["parts"]
    found = [(part["communication"], figures.together(accuracy, part, chosen.sync_steps)) for part in parts]
    print(table.of_together(found, chosen.sync_steps), flush=True)
    return 0


def _say(text: str) -> None:
    print(f"updates: {text}", file=sys.stderr, flush=True)
