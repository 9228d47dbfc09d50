# SPDX-License-Identifier: Apache-2.0
"""The course of a run: the rates of this machine, then point after point."""

import argparse
import json
import os
import shlex
import signal
import sys
import tempfile

from compare_lib import machine
from compare_lib.errors import EXIT_FAILED, EXIT_USAGE, CompareError

from . import figures, options, table
from .measure import Point, rates_of


def main(argv: list[str]) -> int:
    chosen = options.parse(argv)
    for name in ("braidd", "braidctl", "braid-bench"):
        path = os.path.join(chosen.build, "bin", name)
        if not os.access(path, os.X_OK):
            _say(f"{path} is missing: build the project, or give --build")
            return EXIT_USAGE
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    loads, points, errors = [machine.load()], [], {}
    try:
        with tempfile.NamedTemporaryFile(suffix=".json") as rates:
            rates_of(chosen.codecs, chosen, rates.name)
            _measure(chosen, rates.name, points, errors)
    except CompareError as error:
        errors["rates"] = str(error)
        _say(str(error))
    except KeyboardInterrupt:
        _say("interrupted")
        return 128 + signal.SIGINT
    loads.append(machine.load())
    report = {
        "command": shlex.join(["bench/advice", *argv]),
        **{name: getattr(chosen, name) for name in ("nodes", "steps", "encode_threads", "settings")},
        "versions": machine.versions(),
        "load_average": loads,
        "points": points,
        "summary": figures.summary(points),
        "errors": errors,
    }
    print(table.of(report), flush=True)
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2, allow_nan=False)
            file.write("\n")
    return EXIT_FAILED if errors else 0


def _measure(chosen: argparse.Namespace, rates: str, points: list[dict], errors: dict[str, str]) -> None:
    for trace in chosen.traces:
        for nic_mbit in chosen.nic_mbit:
            name = f"{trace} at {nic_mbit} Mbit/s"
            _say(name)
            try:
                found = Point(trace, nic_mbit, rates, chosen).run()
            except CompareError as error:
                errors[name] = str(error)
                _say(f"{name} failed: {error}")
                continue
            points.append(figures.of_point(str(trace), nic_mbit, found))


def _say(text: str) -> None:
    print(f"advice: {text}", file=sys.stderr, flush=True)
