# SPDX-License-Identifier: Apache-2.0
"""The course of a run: point after point, each on a cluster of its own."""

import argparse
import json
import os
import shlex
import shutil
import signal
import sys

from compare_lib import machine
from compare_lib.errors import EXIT_FAILED, EXIT_USAGE, CompareError

from . import formulas, options, table
from .measure import measure, tensors_of


def main(argv: list[str]) -> int:
    chosen = options.parse(argv)
    try:
        check(chosen)
    except CompareError as error:
        _say(str(error))
        return EXIT_USAGE
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    loads, points, errors = [machine.load()], [], {}
    try:
        for point in chosen.points:
            _say(f"point {point}")
            try:
                points.append(measure(point, chosen))
            except CompareError as error:
                errors[str(point)] = str(error)
                _say(f"point {point} failed: {error}")
    except KeyboardInterrupt:
        _say("interrupted")
        return 128 + signal.SIGINT
    loads.append(machine.load())
    report = {
        "command": shlex.join(["bench/scale", *argv]),
        "trace": os.path.basename(chosen.trace),
        "tensors": len(tensors_of(chosen.trace, chosen.divide)["names"]),
        "steps": chosen.steps,
        "operations": chosen.operations,
        "settings": chosen.settings,
        "versions": machine.versions(),
        "load_average": loads,
        "points": points,
        "formulas": formulas.fitted(points),
        "errors": errors,
    }
    print(table.of(report), flush=True)
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)
            file.write("\n")
    return EXIT_FAILED if errors else 0


def check(chosen: argparse.Namespace) -> None:
    """Raises an error that names what is missing, before anything is started."""
    tensors_of(chosen.trace, chosen.divide)
    for tool in ("ip", "ss"):
        if shutil.which(tool) is None:
            raise CompareError(f"{tool} is not installed; run: apt-get install iproute2")
    for name in ("bin/braidd", "bin/braidctl", "lib/libbraid.so.0"):
        path = os.path.join(chosen.build, name)
        if not os.access(path, os.R_OK):
            raise CompareError(f"{path} is missing: build the project, or give --build")


def _say(text: str) -> None:
    print(f"scale: {text}", file=sys.stderr, flush=True)
