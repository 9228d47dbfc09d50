# SPDX-License-Identifier: Apache-2.0
"""The commands of bench/gpu/measure."""

import argparse
import ctypes
import datetime
import json
import os
import shutil
import sys

from cluster_lib import arguments
from cluster_lib.arguments import count, directory

from .. import needs, run
from ..errors import EXIT_FAILED, EXIT_USAGE, RunFailed
from ..paths import RELEASE, ROOT, installation_of
from . import bars, bundle, machine, plan, probe, report, systems
from .course import DONE, Course

_SECONDS = 470
_REHEARSAL_SECONDS = 600
_DRIVER = "libcuda.so.1"
_PROBE_LIMIT_S, _SHORT_PROBE_LIMIT_S = 60.0, 30.0
_WAITING = ["--only", "blocked-streams,queue-depth,holder"]
_REPORT_JSON, _REPORT_MARKDOWN, _ROWS = "report.json", "report.md", "rows.jsonl"

_DESCRIPTION = """\
Measures braid, NCCL and gloo with two ranks on one GPU, between two emulated nodes, and asks the CUDA driver what
braid's GPU path relies on.
"""
_EPILOG = """
commands
  bundle FOLDER     makes a folder that measures on a machine without this checkout: FOLDER/measure [--seconds N]
  run               measures here (in a bundle: FOLDER/measure). Needs a GPU and torch
  rehearse          the same with small tensors on the processor, over braid and gloo: no GPU, no probe
  table FILE        the Markdown of a report.json

run and rehearse write, into --output
  report.md         the tables, also printed: what must hold and whether it did, with the ratios of this run
  report.json       all figures; rows.jsonl has each as soon as it is known

exit codes
  0 every step has figures; 1 a step failed, or had no time left (the table says which); 2 bad arguments, or something
  is missing (nothing was started)
"""


def _parser() -> argparse.ArgumentParser:
    made = arguments.parser("bench/gpu/measure", _DESCRIPTION, _EPILOG)
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in ("bundle", "run", "rehearse"):
        one = commands.add_parser(name)
        one.add_argument("--build", type=directory, default=RELEASE, metavar="DIR",
                         help="where braid is built (build/release)")  # fmt: skip
        if name == "bundle":
            one.add_argument("folder", metavar="FOLDER")
            continue
        seconds = _SECONDS if name == "run" else _REHEARSAL_SECONDS
        one.add_argument("--seconds", type=count(30, 3600), default=seconds, metavar="N",
                         help=f"the run ends within so many ({seconds})")  # fmt: skip
        one.add_argument("--output", default="gpu-results", metavar="FOLDER", help="for the reports (gpu-results)")
    commands.add_parser("table").add_argument("file", metavar="FILE")
    return made


def main(argv: list[str]) -> int:
    chosen = _parser().parse_args(argv)
    if chosen.command == "table":
        return _table(chosen.file)
    chosen.braid = installation_of(ROOT, chosen.build)
    if chosen.command == "bundle":
        return _bundle(chosen)
    chosen.asked = ["seconds", "output", "build"]
    chosen.json = os.path.join(chosen.output, _REPORT_JSON)
    os.makedirs(chosen.output, exist_ok=True)
    # A bundle has ip and tc, which its machine may lack.
    os.environ["PATH"] = os.pathsep.join([os.path.join(chosen.build, "bin"), os.environ.get("PATH", os.defpath)])
    return Measuring(chosen).run(argv)


def _bundle(chosen: argparse.Namespace) -> int:
    if missing := bundle.missing(chosen.braid):
        print(f"measure: {'; '.join(missing)}", file=sys.stderr)
        return EXIT_USAGE
    try:
        print(bundle.make(os.path.abspath(chosen.folder), chosen.braid))
    except RunFailed as failure:
        print(f"measure: {failure}", file=sys.stderr)
        return EXIT_FAILED
    return 0


def _table(path: str) -> int:
    try:
        with open(path, encoding="utf-8") as file:
            text = report.lines(json.load(file))
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"measure: {path} is no report.json: {error!r}", file=sys.stderr)
        return EXIT_USAGE
    print("\n".join(text))
    return 0


class Measuring(run.Run):
    """`run` and `rehearse`."""

    command = "bench/gpu/measure"

    def __init__(self, chosen: argparse.Namespace):
        super().__init__(chosen)
        self._is_rehearsal = chosen.command == "rehearse"
        self._date = datetime.date.today().isoformat()
        self._machine: dict = {}
        self._course = Course(
            chosen.seconds, chosen.braid, plan.REHEARSED if self._is_rehearsal else plan.ON_A_GPU, self.say, self._keep
        )
        self._rows = open(os.path.join(chosen.output, _ROWS), "w", encoding="utf-8")

    def _keep(self, row: dict) -> None:
        json.dump(row, self._rows)
        self._rows.write("\n")
        self._rows.flush()

    def missing(self) -> list[str]:
        braid = self._chosen.braid
        found = needs.programs(ip="iproute2", tc="iproute2")
        found += needs.files([*(braid.program(name) for name in ("braidd", probe.NAME)), braid.library])
        if not needs.has_module(systems.python(), "torch"):
            found.append(f"{systems.python()} has no torch")
        if not self._is_rehearsal and not _has_driver():
            found.append(f"{_DRIVER} cannot be loaded: this machine has no GPU (`rehearse` needs none)")
        return found

    def measure(self) -> None:
        self._machine = machine.facts()
        if self._is_rehearsal:
            self._machine["mps"] = False
            self._take(plan.REHEARSAL)
            return
        self._probe("probe", _PROBE_LIMIT_S)
        self._probe("probe, one connection", _SHORT_PROBE_LIMIT_S, _WAITING, CUDA_DEVICE_MAX_CONNECTIONS="1")
        with machine.shared_gpu() as has_mps:
            self._machine["mps"] = has_mps
            self._take(plan.DEVICE)

    def _take(self, steps: list[plan.Step]) -> None:
        has_iperf = shutil.which(plan.IPERF) is not None
        self._course.run([step for step in steps if has_iperf or step.system != plan.IPERF])

    def _probe(self, name: str, limit_s: float, arguments: list[str] | None = None, **variables: str) -> None:
        program = self._chosen.braid.program(probe.NAME)
        self._course.take(
            plan.Step("", "", name, limit_s),
            lambda deadline: probe.rows(program, arguments or [], variables, deadline),
        )

    def report(self) -> dict:
        self._rows.close()
        self.versions |= self._course.versions
        for outcome in self._course.outcomes:
            if outcome.text != DONE:
                self.errors[str(outcome.step).strip()] = outcome.text
        seconds = self._course.elapsed()
        return {
            "date": self._date,
            "is_rehearsal": self._is_rehearsal,
            "machine": self._machine,
            "has_namespaces": self._course.has_namespaces,
            "seconds": seconds,
            "bars": [bar.as_json() for bar in bars.bars(self._course.rows, seconds, self._chosen.seconds)],
            "steps": [outcome.as_json() for outcome in self._course.outcomes],
            "rows": self._course.rows,
        }

    def lines(self, found: dict) -> list[str]:
        text = report.lines(found)
        with open(os.path.join(self._chosen.output, _REPORT_MARKDOWN), "w", encoding="utf-8") as file:
            file.write("\n".join([*text, ""]))
        return text


def _has_driver() -> bool:
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        return False
    return True
