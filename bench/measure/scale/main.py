# SPDX-License-Identifier: Apache-2.0
"""bench/scale: point after point, each on a cluster of its own."""

import argparse
import os
import re

from cluster_lib.arguments import count, distinct, existing_file

from .. import needs, options, run, table
from ..errors import RunFailed, SystemFailed
from ..paths import ROOT
from . import figures
from .point import Point, measure, tensors_of

NODES_MAX, TRAINERS_MAX = 128, 256

_DESCRIPTION = """\
Starts clusters of several sizes on this machine (scripts/cluster), one after the other, runs jobs
on each, and measures what they cost each daemon: control traffic, memory, descriptors, sockets, the
distribution of plans. docs/scaling.md has the formulas.
"""

_EPILOG = """\
points
  N[xR[xJ]]: N nodes, R ranks on each, J jobs at once, each with all ranks on nodes of its own trainers.
  8 is 8x1x1. All jobs have node 0 as their coordinator.

what happens at a point
  base        the daemons have started and know nothing of each other
  formation   all trainers open their jobs at the same moment
  idle        nothing is submitted for --idle-seconds
  operations  --operations all-reduces of 4 kB, one after the other
  steps       --steps steps of a trace's gradients as planned tensors, by the live planner. Each has
              1/64 of its elements: messages depend on how many there are, not on their bytes

figures, per node: node 0 (the coordinator) and the median of the others (member)
  traffic is what the sockets of control.port say (ss): bytes of payload, packets of data;
  messages are the daemon's own count, without heartbeats, those to itself included;
  memory_bytes is the daemon's anonymous memory, and not what the kernel holds for its sockets

example
  bench/scale --points 2,4,8,16,32,8x4,8x1x4 --json scale.json
"""

# Name in the JSON file, heading, divided by.
_LINES = (
    ("peers", "peers", 1),
    ("flows", "flows", 1),
    ("descriptors", "descriptors", 1),
    ("threads", "threads", 1),
    ("memory_bytes", "memory, MiB", 1 << 20),
    ("idle_bytes_per_second", "idle, B/s sent", 1),
    ("idle_packets_per_second", "idle, packets/s sent", 1),
    ("idle_cpu_share", "idle, cores", 1),
    ("formation_cpu_seconds", "formation, CPU ms", 1e-3),
    ("formation_messages_sent", "formation, messages sent", 1),
    ("formation_messages_received", "formation, messages received", 1),
    ("formation_bytes_sent", "formation, kB sent", 1e3),
    ("formation_bytes_received", "formation, kB received", 1e3),
    ("operation_messages", "operation, messages sent", 1),
    ("operation_bytes", "operation, B sent", 1),
    ("operation_chunks", "operation, chunks sent", 1),
    ("step_operations", "steps, operations", 1),
    ("step_bytes_sent", "steps, kB sent", 1e3),
    ("plan_reports", "plan reports", 1),
    ("plan_report_bytes", "a report, B", 1),
    ("plan_rounds", "plan rounds", 1),
    ("plan_round_bytes", "a round, B", 1),
)


def main(argv: list[str]) -> int:
    return Points(parse(argv)).run(argv)


def _point(text: str) -> Point:
    if not re.fullmatch(r"\d+(x\d+){0,2}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a point such as 8, 8x2 or 8x1x4")
    point = Point(*map(int, text.split("x")))
    if not 2 <= point.nodes <= NODES_MAX or not 1 <= point.trainers <= TRAINERS_MAX:
        raise argparse.ArgumentTypeError(
            f"'{text}': there are 2 to {NODES_MAX} nodes, and 1 to {TRAINERS_MAX} trainers in all, not {point.trainers}"
        )
    return point


def parse(argv: list[str]) -> argparse.Namespace:
    parser = options.parser("bench/scale", _DESCRIPTION, _EPILOG, timeout_s=120)
    add = parser.add_argument
    add("--points", type=distinct(_point), default="2,4,8,16,32", metavar="N[xR[xJ]],...",
        help="what is measured (2,4,8,16,32)")  # fmt: skip
    add("--idle-seconds", type=count(1, 600), default=5, metavar="S", help="of being idle (5)")
    add("--operations", type=count(1, 10**6), default=50, metavar="O", help="per job (50)")
    add("--steps", type=count(1, 10**6), default=40, metavar="S", help="per job (40)")
    add("--trace", type=existing_file, default=os.path.join(ROOT, "traces", "densenet121_b4.json"), metavar="FILE",
        help="whose gradients are planned (traces/densenet121_b4.json)")  # fmt: skip
    return options.parse(parser, argv)


class Points(run.Run):
    command = "bench/scale"

    def __init__(self, chosen: argparse.Namespace):
        super().__init__(chosen)
        self._rows: list[dict] = []

    def missing(self) -> list[str]:
        braid = self._chosen.braid
        found = needs.programs(ip="iproute2", ss="iproute2")
        found += needs.files([braid.program("braidd"), braid.program("braidctl"), braid.library])
        try:
            tensors_of(self._chosen.trace)
        except SystemFailed as error:
            found.append(str(error))
        return found

    def measure(self) -> None:
        for point in self._chosen.points:
            self.say(f"point {point}")
            self.attempt(str(point), lambda p=point: self._measure(p))

    def _measure(self, point: Point) -> None:
        try:
            self._rows += measure(point, self._chosen)
        except RunFailed as failure:  # each point has a cluster of its own
            raise SystemFailed(str(failure)) from None

    def report(self) -> dict:
        return {"tensors": len(tensors_of(self._chosen.trace)["names"]), "rows": self._rows}

    def lines(self, report: dict) -> list[str]:
        heading = f"# {report['tensors']} planned tensors of {os.path.basename(self._chosen.trace)}"
        return [heading, *_table(report["rows"])] if report["rows"] else [heading]


def _table(rows: list[dict]) -> list[str]:
    """A line per figure, a column per point."""
    by_point: dict[str, list[dict]] = {}
    for row in rows:
        by_point.setdefault(row["point"], []).append(row)
    coordinators = {point: nodes[0] for point, nodes in by_point.items()}
    lines = [{"figure": "formation", **_texts(coordinators, "formation_seconds", table.seconds_text)}]
    for name, heading, unit in _LINES:
        for role in range(len(figures.ROLES)):
            nodes = {point: of_point[role] for point, of_point in by_point.items()}
            if any(node[name] is not None for node in nodes.values()):
                texts = _texts(nodes, name, lambda value, by=unit: table.number_text(value / by))
                lines.append({"figure": f"{heading} ({figures.ROLES[role]})", **texts})
    columns = [table.column("nodes x ranks x jobs", "figure"), *(table.column(point, point) for point in by_point)]
    return table.lines(columns, lines)


def _texts(nodes: dict[str, dict], name: str, text) -> dict[str, str | None]:
    return {point: None if node[name] is None else text(node[name]) for point, node in nodes.items()}
