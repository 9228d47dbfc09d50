# SPDX-License-Identifier: Apache-2.0
"""The options that all commands have, and kinds of arguments that several have."""

import argparse
import re
from collections.abc import Callable

from cluster_lib import arguments
from cluster_lib.arguments import count, directory, mbit, output_file, setting
from cluster_lib.state import Delay

from .paths import RELEASE, ROOT, installation_of

BYTES_MAX = 4 << 30
_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_EXIT_CODES = """
exit codes
  0 everything was measured; 1 a system, a point or the cluster failed; 2 bad arguments or something that is not
  installed (nothing was started)
"""


def parser(command: str, description: str, epilog: str, timeout_s: int) -> argparse.ArgumentParser:
    made = arguments.parser(command, description, epilog + _EXIT_CODES)
    add = made.add_argument
    add("--set", type=setting, action="append", default=[], dest="settings", metavar="KEY=VALUE",
        help="a setting of braid's daemons; repeatable")  # fmt: skip
    add("--json", type=output_file, metavar="FILE", help="write the figures there")
    add("--timeout", type=count(1, 3600), default=timeout_s, metavar="SECONDS",
        help=f"for a start, and for one measurement ({timeout_s})")  # fmt: skip
    add("--build", type=directory, default=RELEASE, metavar="DIR", help="where braid is built (build/release)")
    return made


def add_cluster(
    parser: argparse.ArgumentParser, nodes_min: int = 1, nic_mbit: str | None = None, flow_mbit: str | None = None
) -> None:
    """The texts are defaults."""
    add = parser.add_argument
    add("--nodes", type=count(nodes_min, 64), default=4, metavar="N", help="nodes (4)")
    add("--nic-mbit", type=mbit, default=nic_mbit, metavar="X",
        help=f"each node's NIC, Mbit/s ({nic_mbit or 'unshaped'})")  # fmt: skip
    add("--flow-mbit", type=mbit, default=flow_mbit, metavar="Y[,Y...]",
        help=f"cap of each TCP flow ({flow_mbit or 'none'})")  # fmt: skip


def parse(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """With what a cluster's shape consists of, whether there are options for it or not. `asked`: the options' names."""
    options = parser.parse_args(argv)
    options.asked = list(vars(options))
    shape = {"nodes": None, "ranks_per_node": 1, "nic_mbit": None, "flow_mbit": None, "delay": Delay()}
    for name, value in shape.items():
        setattr(options, name, getattr(options, name, value))
    options.braid = installation_of(ROOT, options.build)
    return options


def parse_bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([a-z]*)", text.strip().lower())
    if not match or match[2] not in _UNITS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size such as 10000, 64KiB or 25MB")
    size = int(match[1]) * _UNITS[match[2]]
    if size == 0 or size % 4 != 0 or size > BYTES_MAX:
        raise argparse.ArgumentTypeError(
            f"{text}: sizes are multiples of the 4 bytes of a float32, up to {BYTES_MAX >> 30}GiB"
        )
    return size


def number(low: float, high: float) -> Callable[[str], float]:
    def parse_number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {low:g} to {high:g}")
        return value

    return parse_number


def one_of(names) -> Callable[[str], str]:
    def parse_name(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"'{text}' is none of {', '.join(names)}")
        return text

    return parse_name
