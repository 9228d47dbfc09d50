# SPDX-License-Identifier: Apache-2.0
"""The command line of scripts/man-pages."""

import argparse
import pathlib
import sys
from collections.abc import Callable

from .parse import HelpError
from .programs import TREE, Programs


def run(prog: str, description: str, write: Callable[[Programs, pathlib.Path], None]) -> int:
    parser = argparse.ArgumentParser(prog=prog, description=description, allow_abbrev=False)
    built = TREE / "build" / "release" / "bin"
    parser.add_argument(
        "--bin", type=pathlib.Path, default=built, metavar="FOLDER",
        help="where braidd, braidctl and braid-bench are (build/release/bin)",
    )  # fmt: skip
    parser.add_argument(
        "--output", type=pathlib.Path, required=True, metavar="FOLDER", help="where the files go; it is made"
    )
    options = parser.parse_args()
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        write(Programs(options.bin.resolve()), options.output)
    except (HelpError, OSError) as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return 1
    return 0
