# SPDX-License-Identifier: Apache-2.0
"""The variables BRAID_… of a trainer's environment: which there are, and what is wrong with those that are set."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping

# Those that a trainer reads, in Python or in libbraid, besides those of its launcher.
NAMES = frozenset({
    "BRAID_CODEC", "BRAID_CUDA_WAIT", "BRAID_DAEMON", "BRAID_DAEMON_LOG", "BRAID_DAEMON_UID", "BRAID_ENABLE",
    "BRAID_EXPLAIN", "BRAID_EXPLAIN_SECONDS", "BRAID_JOB", "BRAID_JOB_TOKEN", "BRAID_JOB_WEIGHT",
    "BRAID_KEEP_BUCKETS", "BRAID_LEVELS", "BRAID_LIBRARY", "BRAID_LOG", "BRAID_MASTER_ADDR", "BRAID_NCCL_LIBRARY",
    "BRAID_PERSONAL", "BRAID_SMALLEST_TENSOR", "BRAID_SOCKET", "BRAID_UPDATE",
})  # fmt: skip
# Those of braid's build, tools and tests, which a trainer may inherit.
_OF_TOOLS = (
    "BRAID_BUILD", "BRAID_CACHE", "BRAID_CLUSTER_", "BRAID_COMPARE_", "BRAID_DEVICE_", "BRAID_MEASURE_",
    "BRAID_PAGE_TOKEN",
    "BRAID_UPDATE_DOCUMENTS",
)  # fmt: skip
_SWITCHES = ("BRAID_ENABLE", "BRAID_EXPLAIN", "BRAID_KEEP_BUCKETS", "BRAID_PERSONAL")
_ON, _OFF = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


class WrongVariable(ValueError):
    """A variable of the environment has a value that it cannot have."""


def is_on(variable: str) -> bool:
    """Whether a variable switches something on. Raises WrongVariable if it says neither."""
    value = os.environ.get(variable, "")
    if value.lower() in _ON:
        return True
    if value.lower() in _OFF:
        return False
    raise WrongVariable(f"{variable} is '{value}'; right are '1' (on) and '0' (off)")


def check_switches() -> None:
    """Raises WrongVariable for the first one that is neither on nor off."""
    for variable in _SWITCHES:
        is_on(variable)


def unknown(environment: Mapping[str, str]) -> list[str]:
    """A sentence for each variable that looks like one of braid's, and which nobody reads."""
    found = []
    for name in sorted(environment):
        if not name.startswith("BRAID_") or name in NAMES or name.startswith(_OF_TOOLS):
            continue
        near = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.75)
        hint = f"did you mean {near[0]}?" if near else "docs/pytorch.md lists those that it reads"
        found.append(f"braid does not read the variable {name}: {hint}")
    return found
