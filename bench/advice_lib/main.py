# SPDX-License-Identifier: Apache-2.0
"""The course of a run: the rates of this machine, then point after point."""

import argparse
import os
import tempfile

from compare_lib import course
from compare_lib.errors import CompareError

from . import figures, options, table
from .measure import Point, rates_of


def main(argv: list[str]) -> int:
    return _Points(options.parse(argv)).run(argv, _check, table.of)


def _check(chosen: argparse.Namespace) -> None:
    for name in ("braidd", "braidctl", "braid-bench"):
        path = os.path.join(chosen.build, "bin", name)
        if not os.access(path, os.X_OK):
            raise CompareError(f"{path} is missing: build the project, or give --build")


class _Points(course.Run):
    def __init__(self, chosen: argparse.Namespace):
        super().__init__("bench/advice", chosen)
        self._points: list[dict] = []

    def measure(self) -> None:
        with tempfile.NamedTemporaryFile(suffix=".json") as rates:
            try:
                rates_of(self._chosen.codecs, self._chosen, rates.name)
            except CompareError as error:
                self.fail("rates", error)
                return
            for trace in self._chosen.traces:
                for nic_mbit in self._chosen.nic_mbit:
                    self._measure(trace, nic_mbit, rates.name)

    def _measure(self, trace: options.ScaledTrace, nic_mbit: int, rates: str) -> None:
        name = f"{trace} at {nic_mbit} Mbit/s"
        self.say(name)
        try:
            found = Point(trace, nic_mbit, rates, self._chosen).run()
        except CompareError as error:
            self.fail(name, error)
            return
        self._points.append(figures.of_point(str(trace), nic_mbit, found))

    def report(self) -> dict:
        names = ("nodes", "steps", "encode_threads", "settings")
        return {
            **{name: getattr(self._chosen, name) for name in names},
            "points": self._points,
            "summary": figures.summary(self._points),
        }
