# SPDX-License-Identifier: Apache-2.0
"""The command line of bench/scale."""

import argparse
import dataclasses
import os
import re

from compare_lib.arguments import count, directory, distinct, mbit, output_file
from compare_lib.places import ROOT

NODES_MAX, RANKS_MAX, JOBS_MAX, TRAINERS_MAX = 128, 16, 16, 256

_DESCRIPTION = """\
Starts clusters of several sizes on this machine (scripts/cluster), one after the other, runs jobs
on each, and measures what they cost each daemon: control traffic, memory, descriptors, sockets, the
distribution of plans. Fits a formula to every quantity.
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
              1/--divide of its elements: messages depend on how many there are, not on their bytes

figures, per node: node 0 (the coordinator) and the median of the others (member)
  traffic is what the sockets of control.port say (ss): bytes of payload, packets of data;
  messages are the daemon's own count, without heartbeats, those to itself included;
  memory_bytes is the daemon's anonymous memory, and not what the kernel holds for its sockets

exit codes
  0 all points are complete, 1 a point or a cluster failed, 2 bad arguments or something that is
  missing (nothing was started)

example
  bench/scale --points 2,4,8,16,32,8x4,8x1x4 --json scale.json
"""


@dataclasses.dataclass(frozen=True)
class Point:
    nodes: int
    ranks_per_node: int = 1
    jobs: int = 1

    @property
    def trainers(self) -> int:
        return self.nodes * self.ranks_per_node * self.jobs

    def __str__(self) -> str:
        return f"{self.nodes}x{self.ranks_per_node}x{self.jobs}"


def _point(text: str) -> Point:
    if not re.fullmatch(r"\d+(x\d+){0,2}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a point such as 8, 8x2 or 8x1x4")
    point = Point(*map(int, text.split("x")))
    limits = ((point.nodes, NODES_MAX), (point.ranks_per_node, RANKS_MAX), (point.jobs, JOBS_MAX))
    if any(not 1 <= value <= most for value, most in limits) or point.nodes < 2:
        raise argparse.ArgumentTypeError(
            f"'{text}': there are 2 to {NODES_MAX} nodes, 1 to {RANKS_MAX} ranks on each, "
            f"1 to {JOBS_MAX} jobs"
        )
    if point.trainers > TRAINERS_MAX:
        raise argparse.ArgumentTypeError(
            f"'{text}' has {point.trainers} trainers, {TRAINERS_MAX} are the most"
        )
    return point


def _trace(text: str) -> str:
    if not os.path.isfile(text):
        raise argparse.ArgumentTypeError(f"there is no trace {text}")
    return os.path.abspath(text)


def _setting(text: str) -> str:
    if not re.fullmatch(r"[a-z_.]+=.*", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE")
    return text


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/scale",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--points",
        type=distinct(_point),
        default="2,4,8,16,32",
        metavar="N[xR[xJ]],...",
        help="what is measured (2,4,8,16,32)",
    )
    add("--idle-seconds", type=count(1, 600), default=5, metavar="S", help="of being idle (5)")
    add("--operations", type=count(1, 10**6), default=50, metavar="O", help="per job (50)")
    add("--steps", type=count(1, 10**6), default=40, metavar="S", help="per job (40)")
    add(
        "--trace",
        type=_trace,
        default=os.path.join(ROOT, "traces", "densenet121_b4.json"),
        metavar="FILE",
        help="whose gradients are planned (traces/densenet121_b4.json)",
    )
    add("--divide", type=count(1, 10**6), default=64, metavar="D", help="its counts (64)")
    add("--nic-mbit", type=mbit, metavar="X", help="each node's NIC, Mbit/s (unshaped)")
    add(
        "--set",
        type=_setting,
        action="append",
        default=[],
        dest="settings",
        metavar="KEY=VALUE",
        help="a setting of the daemons; repeatable",
    )
    add("--json", type=output_file, metavar="FILE", help="write the figures there")
    add(
        "--timeout",
        type=count(1, 3600),
        default=120,
        metavar="SECONDS",
        help="for each part of a point (120)",
    )
    add(
        "--build",
        type=directory,
        default=os.path.join(ROOT, "build", "release"),
        metavar="DIR",
        help="where bin/braidd, bin/braidctl and lib/libbraid.so.0 are (build/release)",
    )
    return parser.parse_args(argv)
