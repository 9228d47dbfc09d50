# SPDX-License-Identifier: Apache-2.0
"""Puts a function of ours in the place of one of torch.distributed's."""

from __future__ import annotations

import sys
from typing import Any

import torch.distributed as dist


def replace_everywhere(name: str, original: Any, wrapper: Any) -> None:
    """Modules of torch that are loaded already hold the original under its name as well."""
    for module_name, module in list(sys.modules.items()):
        if module_name.split(".")[0] == "torch" and vars(module).get(name) is original:
            setattr(module, name, wrapper)
    setattr(dist, name, wrapper)
