# SPDX-License-Identifier: Apache-2.0
"""The options that delay and lose packets, as all tools that make a cluster have them."""

import argparse
import dataclasses
import math

from .errors import ClusterError
from .state import Delay

DELAY_MS_MAX = 10_000.0
LOSS_PERCENT_MAX = 99.0
SEED_MAX = 2**32 - 1


def add(parser: argparse.ArgumentParser) -> None:
    for name, metavar, text in (
        ("--delay-ms", "D", "from a node to another, one way (0)"),
        ("--jitter-ms", "J", "the delay is up to J more or less (0)"),
        ("--loss-percent", "P", "of all packets, each way (0)"),
    ):
        parser.add_argument(name, type=_number, metavar=metavar, help=text)
    parser.add_argument("--seed", type=_seed, metavar="S", help="of jitter and loss (1)")


def are_given(options: argparse.Namespace) -> bool:
    return bool(_given(options))


def parse(options: argparse.Namespace) -> Delay:
    """What was asked for, checked."""
    delay = Delay(**_given(options))
    for name, value, most in (
        ("--delay-ms", delay.delay_ms, DELAY_MS_MAX),
        ("--jitter-ms", delay.jitter_ms, DELAY_MS_MAX),
        ("--loss-percent", delay.loss_percent, LOSS_PERCENT_MAX),
    ):
        if not math.isfinite(value) or not 0 <= value <= most:
            raise ClusterError(f"{name} {value:g} cannot be emulated: give 0 to {most:g}")
    if delay.jitter_ms > delay.delay_ms:
        raise ClusterError(
            f"--jitter-ms {delay.jitter_ms:g} is more than --delay-ms {delay.delay_ms:g}: "
            "nothing arrives before it was sent"
        )
    return delay


def arguments(delay: Delay) -> list[str]:
    """The command line that asks for it."""
    return [
        *("--delay-ms", f"{delay.delay_ms:.6f}", "--jitter-ms", f"{delay.jitter_ms:.6f}"),
        *("--loss-percent", f"{delay.loss_percent:.6f}", "--seed", str(delay.seed)),
    ]


def _given(options: argparse.Namespace) -> dict:
    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(Delay)}
    return {name: value for name, value in values.items() if value is not None}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) > SEED_MAX:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 to {SEED_MAX}")
    return int(text)
