# SPDX-License-Identifier: Apache-2.0
"""The course of a run, which all commands have in common, from the check to the exit code."""

import argparse
import json
import os
import platform
import re
import shlex
import signal
import sys
from collections.abc import Callable

from .cluster import Cluster
from .errors import EXIT_FAILED, EXIT_USAGE, RunFailed, SystemFailed


class Run:
    """What one command measures, and what failed meanwhile. Main thread only."""

    command = ""  # its path in the checkout

    def __init__(self, chosen: argparse.Namespace):
        """`chosen`: as options.parse() returns it."""
        self.errors: dict[str, str] = {}
        self.versions = {"kernel": platform.release(), "cores": str(len(os.sched_getaffinity(0)))}
        self._chosen = chosen

    def missing(self) -> list[str]:
        """What is not installed, or refused; nothing has been started then."""
        raise NotImplementedError

    def measure(self) -> None:
        """Raises RunFailed where nothing else can be measured."""
        raise NotImplementedError

    def report(self) -> dict:
        """What has been measured: "rows", and what else there is; run() adds what all commands report."""
        raise NotImplementedError

    def lines(self, report: dict) -> list[str]:
        """The report for a terminal, a heading first."""
        raise NotImplementedError

    def say(self, text: str) -> None:
        print(f"{self.command.rpartition('/')[2]}: {text}", file=sys.stderr, flush=True)

    def attempt(self, name: str, action: Callable[[], object]) -> bool:
        """What has this name and fails is not measured, or not as a whole; the others go on."""
        try:
            action()
        except SystemFailed as failure:
            self.errors[name] = str(failure)
            self.say(f"{name} failed: {failure}")
            return False
        return True

    def end(self, cluster: Cluster) -> None:
        if complaint := cluster.end():
            self.errors.setdefault("cluster", complaint)
            self.say(complaint)

    def run(self, argv: list[str]) -> int:
        """The command's exit code."""
        if missing := self.missing():
            self.say("; ".join(missing))
            return EXIT_USAGE
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        loads = [os.getloadavg()[0]]  # the processes that wanted to run in the last minute, also others'
        try:
            self.measure()
        except RunFailed as error:
            self.errors["cluster"] = str(error)
            self.say(str(error))
        except KeyboardInterrupt:
            self.say("interrupted")
            return 128 + signal.SIGINT
        report = {
            "command": shlex.join([self.command, *argv]),
            "options": {name: _told(getattr(self._chosen, name)) for name in self._chosen.asked},
            **self.report(),
            "versions": self.versions,
            "load_average": [*loads, os.getloadavg()[0]],
            "errors": self.errors,
        }
        failures = [f"{name} FAILED: {_reason(text)}" for name, text in self.errors.items()]
        print("\n".join([*self.lines(report), *failures]), flush=True)
        if self._chosen.json:
            with open(self._chosen.json, "w", encoding="utf-8") as file:
                json.dump(report, file, indent=2, allow_nan=False)
                file.write("\n")
        return EXIT_FAILED if self.errors else 0


def _told(value):
    if isinstance(value, list):
        return [_told(one) for one in value]
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _reason(text: str) -> str:
    """What the command saw, and the last error that a process named. All of it was said, and is in the JSON file."""
    seen, *said = text.strip().splitlines() or [""]
    named = [line for line in said if re.search(r"Error\b|what\(\):", line)]
    return f"{seen}: {named[-1].strip()}" if named else seen
