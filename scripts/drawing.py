# SPDX-License-Identifier: Apache-2.0
"""Charts of the tools in Python: `braidctl draw` makes them all, so they look alike (docs/figures.md)."""

import json
import os
import subprocess

_TIMEOUT_S = 60


class DrawingError(Exception):
    pass


def svg(figure: dict, braidctl: str | os.PathLike) -> str:
    """The figure as an SVG document."""
    try:
        done = subprocess.run(
            [braidctl, "draw", "/dev/stdin"], input=json.dumps(figure), capture_output=True, text=True,
            timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DrawingError(f"{braidctl}: {error}") from error
    if done.returncode != 0:
        raise DrawingError(done.stderr.strip())
    return done.stdout
