# SPDX-License-Identifier: Apache-2.0
"""The command braid-plot."""

from __future__ import annotations

import argparse
import json
import sys

from braid import __version__
from braid._command_line import Parser

_DESCRIPTION = "Draws what braidctl and the benchmarks print as JSON."
_KINDS = (
    "braidctl plan, simulate or advise --format json, or the --json file of bench/compare, bench/train or bench/steps "
    "--timeline"
)
_EPILOG = """\
examples:
  braidctl plan --job train --format json | braid-plot -o plan.svg
  braidctl simulate --trace t.json --algorithm ring --alpha 5e-5 --beta 1e-9 --workers 4,8,...,512 --format json \\
    | braid-plot --title "t.json on a ring" -o sweep.png
  bench/compare --json compare.json && braid-plot compare.json -o compare.svg
"""
_FORMATS = (".svg", ".png", ".pdf")


class _Failed(Exception):
    pass


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="braid-plot", description=_DESCRIPTION, epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"braid-plot {__version__}")
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="the JSON (-: standard input)")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the picture: *.svg, *.png or *.pdf")
    parser.add_argument("--title", default="", metavar="TEXT", help="the heading, instead of one from the JSON")
    options = parser.parse_args(argv)
    if not options.output.endswith(_FORMATS):
        parser.error(f"--output: '{options.output}' is no picture; right is a name that ends with .svg, .png or .pdf")
    try:
        _draw(options)
    except _Failed as error:
        print(f"braid-plot: {error}", file=sys.stderr)
        return 1
    return 0


def _draw(options: argparse.Namespace) -> None:
    name = "standard input" if options.file == "-" else options.file
    document = _read(options.file, name)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise _Failed(
            f"{sys.executable} has no matplotlib, which draws: apt-get install python3-matplotlib, or in a virtual"
            " environment pip install matplotlib"
        ) from None
    try:
        page = _page_of(document, options.title)
    except (KeyError, TypeError, IndexError, AttributeError, StopIteration) as error:
        raise _Failed(f"{name}: it is not as {_KINDS} prints it: {type(error).__name__}: {error}") from None
    except ValueError as error:
        raise _Failed(f"{name}: {error}") from None
    try:
        page.save(options.output)
    except OSError as error:
        raise _Failed(f"{options.output}: it cannot be written: {error.strerror}") from None


def _read(file: str, name: str):
    try:
        if file == "-":
            return json.load(sys.stdin)
        with open(file, encoding="utf-8") as opened:
            return json.load(opened)
    except OSError as error:
        raise _Failed(f"{name}: it cannot be read: {error.strerror}") from None
    except ValueError as error:  # also of bytes that are no UTF-8
        raise _Failed(f"{name}: it is no JSON: {error}; right is what {_KINDS} prints") from None


def _page_of(document, title: str):
    from braid.plot import benchmarks, planning, trainings

    if isinstance(document, list) and document and "speedup" in document[0]:
        return planning.simulate(document, title)
    kinds = (
        ("units", planning.plan),
        ("sets", planning.live),
        ("sweep", planning.advise),
        ("comparisons", benchmarks.compare),
        ("timelines", benchmarks.timeline),
        ("courses", trainings.trainings),
    )
    for key, draw in kinds:
        if isinstance(document, dict) and key in document:
            return draw(document, title)
    raise ValueError(f"nothing that can be drawn; right is what {_KINDS} prints")


if __name__ == "__main__":
    sys.exit(main())
