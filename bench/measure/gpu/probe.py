# SPDX-License-Identifier: Apache-2.0
"""The rows of braid-gpu-probe, which asks the CUDA driver what braid's GPU path relies on."""

import json
import os
from collections.abc import Iterator

from ..errors import Deadline, SystemFailed
from ..programs import Program

NAME = "braid-gpu-probe"


def rows(program: str, arguments: list[str], variables: dict[str, str], deadline: Deadline) -> Iterator[dict]:
    """Each as soon as the probe says it: what came before a failure is kept."""
    probe = Program([program, *arguments], {**os.environ, **variables})
    try:
        for line in probe.lines(deadline):
            yield parse(line)
        code = probe.wait(deadline)
        if code != 0:
            reason = f"no end within {deadline.seconds:g} s" if code is None else "it failed"
            raise SystemFailed(f"{reason}\n{probe.last_words()}")
    finally:
        probe.stop(grace_s=0.5)


def parse(line: str) -> dict:
    try:
        row = json.loads(line)
        return {**row, "test": f"probe {row['test']}"}
    except (ValueError, KeyError, TypeError):
        raise SystemFailed(f"{NAME} said what is no row: {line}") from None
