# SPDX-License-Identifier: Apache-2.0
"""Puts a function of ours in the place of one of torch.distributed's."""

from __future__ import annotations

import sys
from typing import Any

import torch.distributed as dist


def replace_everywhere(name: str, original: Any, wrapper: Any) -> None:
    """Modules that are loaded already may hold the original under its name as well: torch's, and the
    script's, which has imported it by name."""
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(name) is original:
            setattr(module, name, wrapper)
    setattr(dist, name, wrapper)
