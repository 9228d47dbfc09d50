# SPDX-License-Identifier: Apache-2.0
"""What braid stands in for: functions of torch.distributed, and backends by their names."""

from __future__ import annotations

import logging
import sys
from typing import Any

import torch.distributed as dist

_log = logging.getLogger("braid")
_REPLACED = frozenset({"gloo", "nccl", "mpi", "ucc", "undefined", "braid"})


def replace_everywhere(name: str, original: Any, wrapper: Any) -> None:
    """Modules that are loaded already may hold the original under its name as well: torch's, and the
    script's, which has imported it by name."""
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(name) is original:
            setattr(module, name, wrapper)
    setattr(dist, name, wrapper)


def names_of(backend: Any) -> list[str]:
    """Those in a list by device, such as cpu:gloo,cuda:nccl, or the one."""
    return [part.split(":")[-1].strip().lower() for part in str(backend).split(",")]


def substitute(backend: Any) -> Any:
    """ "braid" for a backend or a list of them by device that braid stands in for."""
    if _REPLACED.issuperset(names_of(backend)):
        return "braid"
    _log.warning("backend %r is left as it is: braid does not stand in for it", backend)
    return backend
