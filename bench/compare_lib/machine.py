# SPDX-License-Identifier: Apache-2.0
"""What the figures were measured on."""

import os
import platform


def versions() -> dict[str, str]:
    return {"kernel": platform.release(), "cores": str(len(os.sched_getaffinity(0)))}


def load() -> float:
    """How many processes wanted to run in the last minute: ours, and those of others."""
    return os.getloadavg()[0]
