# SPDX-License-Identifier: Apache-2.0
"""The course of a run, which the commands of this folder have in common, from the check to the exit code."""

import argparse
import json
import shlex
import signal
import sys
from collections.abc import Callable

from . import machine
from .cluster import Cluster
from .errors import EXIT_FAILED, EXIT_USAGE, CompareError, SystemFailed


class Run:
    """What one command measures, and what failed meanwhile. Main thread only."""

    def __init__(self, command: str, chosen: argparse.Namespace):
        """`command` is its path in the checkout, "bench/train" for one."""
        self.command = command
        self.errors: dict[str, str] = {}
        self.versions = machine.versions()
        self._chosen = chosen

    def measure(self) -> None:
        """Raises CompareError where nothing else can be measured."""
        raise NotImplementedError

    def report(self) -> dict:
        """What has been measured; run() adds what all commands report."""
        raise NotImplementedError

    def say(self, text: str) -> None:
        print(f"{self.command.rpartition('/')[2]}: {text}", file=sys.stderr, flush=True)

    def fail(self, name: str, failure: CompareError | SystemFailed) -> None:
        """What has this name is not measured, or not as a whole; the others go on."""
        self.errors[name] = str(failure)
        self.say(f"{name} failed: {failure}")

    def end(self, cluster: Cluster) -> None:
        if complaint := cluster.end():
            self.errors.setdefault("cluster", complaint)
            self.say(complaint)

    def run(
        self, argv: list[str], check: Callable[[argparse.Namespace], None], table_of: Callable[[dict], str]
    ) -> int:
        """The command's exit code. `check` raises CompareError, which names what is missing."""
        try:
            check(self._chosen)
        except CompareError as error:
            self.say(str(error))
            return EXIT_USAGE
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        loads = [machine.load()]
        try:
            self.measure()
        except CompareError as error:
            self.errors["cluster"] = str(error)
            self.say(str(error))
        except KeyboardInterrupt:
            self.say("interrupted")
            return 128 + signal.SIGINT
        report = {
            "command": shlex.join([self.command, *argv]),
            **self.report(),
            "versions": self.versions,
            "load_average": [*loads, machine.load()],
            "errors": self.errors,
        }
        print(table_of(report), flush=True)
        if self._chosen.json:
            with open(self._chosen.json, "w", encoding="utf-8") as file:
                json.dump(report, file, indent=2, allow_nan=False)
                file.write("\n")
        return EXIT_FAILED if self.errors else 0
