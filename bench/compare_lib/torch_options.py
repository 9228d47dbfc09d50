# SPDX-License-Identifier: Apache-2.0
"""What --through torch changes on the command line: other defaults, and choices that only it has."""

import argparse

from cluster_lib.arguments import distinct

from .cases import COLLECTIVES, ELEMENT_BYTES, Case

SYSTEMS = ("braid", "gloo")
_RANKS_MAX = 256  # beyond, bfloat16 cannot tell ranks apart, and no result could be checked
# Without torch, with it.
_DEFAULTS = {
    "sizes": ("10000,1MB,25MB", "24MB"),
    "systems": ("braid,gloo,openmpi", "braid,gloo"),
    "iterations": ("20", "10"),
}


def _one_of(names):
    def parse(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"'{text}' is none of {', '.join(names)}")
        return text

    return parse


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--through",
        choices=["torch"],
        help="measure the collectives of torch.distributed instead, with copies of tensors",
    )
    parser.add_argument(
        "--collectives",
        type=distinct(_one_of(COLLECTIVES)),
        metavar="NAME,...",
        help=f"with --through torch ({','.join(COLLECTIVES)})",
    )
    parser.add_argument(
        "--dtypes",
        type=distinct(_one_of(tuple(ELEMENT_BYTES))),
        metavar="NAME,...",
        help=f"with --through torch, of {', '.join(ELEMENT_BYTES)} (float32,bfloat16)",
    )


def default(name: str) -> str:
    """For the help."""
    without, with_torch = _DEFAULTS[name]
    return f"{without}; through torch {with_torch}"


def finish(parser: argparse.ArgumentParser, options: argparse.Namespace, parsers: dict) -> None:
    """Fills in what was not given, and adds `cases`; `parsers` read the defaults of the lists."""
    through = options.through == "torch"
    for name, texts in _DEFAULTS.items():
        if getattr(options, name) is None:
            setattr(options, name, parsers[name](texts[through]))
    for name in ("collectives", "dtypes"):
        if not through and getattr(options, name) is not None:
            parser.error(f"--{name}: only with --through torch; without it braid and its peers all-reduce float32")
    if through:
        _check(parser, options)
    collectives = options.collectives or (list(COLLECTIVES) if through else ["all_reduce"])
    dtypes = options.dtypes or (["float32", "bfloat16"] if through else ["float32"])
    options.cases = [Case(b, c, d) for b in options.sizes for c in collectives for d in dtypes]


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    others = [name for name in options.systems if name not in SYSTEMS]
    if others:
        parser.error(f"--systems: through torch only {', '.join(SYSTEMS)} can be measured, not {', '.join(others)}")
    ranks = options.nodes * options.ranks_per_node
    if ranks > _RANKS_MAX:
        parser.error(f"--through torch: {ranks} ranks are more than the {_RANKS_MAX} whose results can be checked")
