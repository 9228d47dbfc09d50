# SPDX-License-Identifier: Apache-2.0
"""The options that all commands of this folder have."""

import argparse

from cluster_lib.arguments import count, directory, mbit, output_file, setting

from .paths import RELEASE


def add(
    parser: argparse.ArgumentParser,
    timeout_help: str,
    build_help: str,
    timeout_s: int = 120,
    nic_mbit: str | None = None,
    has_nic: bool = True,
) -> None:
    """timeout_s and nic_mbit are defaults. has_nic: there is --nic-mbit."""
    if has_nic:
        parser.add_argument(
            "--nic-mbit",
            type=mbit,
            default=nic_mbit,
            metavar="X",
            help=f"each node's NIC, Mbit/s ({nic_mbit or 'unshaped'})",
        )
    parser.add_argument(
        "--set",
        type=setting,
        action="append",
        default=[],
        dest="settings",
        metavar="KEY=VALUE",
        help="a setting of braid's daemons; repeatable",
    )
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the figures there")
    parser.add_argument(
        "--timeout",
        type=count(1, 3600),
        default=timeout_s,
        metavar="SECONDS",
        help=f"{timeout_help} ({timeout_s})",
    )
    parser.add_argument(
        "--build",
        type=directory,
        metavar="DIR",
        help=f"where {build_help} are (build/release)",
    )


def parse(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    options = parser.parse_args(argv)
    options.build = options.build or RELEASE
    return options
