# SPDX-License-Identifier: Apache-2.0
"""The course of a run: point after point, each on a cluster of its own."""

import argparse
import os
import shutil

from compare_lib import course
from compare_lib.errors import CompareError

from . import formulas, options, table
from .measure import measure, tensors_of


def main(argv: list[str]) -> int:
    return _Points(options.parse(argv)).run(argv, check, table.of)


class _Points(course.Run):
    def __init__(self, chosen: argparse.Namespace):
        super().__init__("bench/scale", chosen)
        self._points: list[dict] = []

    def measure(self) -> None:
        for point in self._chosen.points:
            self.say(f"point {point}")
            try:
                self._points.append(measure(point, self._chosen))
            except CompareError as error:
                self.fail(str(point), error)

    def report(self) -> dict:
        chosen = self._chosen
        return {
            "trace": os.path.basename(chosen.trace),
            "tensors": len(tensors_of(chosen.trace, chosen.divide)["names"]),
            "steps": chosen.steps,
            "operations": chosen.operations,
            "settings": chosen.settings,
            "points": self._points,
            "formulas": formulas.fitted(self._points),
        }


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
