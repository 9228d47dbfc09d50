# SPDX-License-Identifier: Apache-2.0
"""PyTorch over braid.

    import braid.torch
    braid.torch.register()
    torch.distributed.init_process_group("braid")

Names are imported when first used: this package is loaded at the end of every `import torch` in an
environment where braid is installed, and must cost nothing there.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "Acco": "acco",
    "BraidProcessGroup": "process_group",
    "DelayedOptimizer": "delayed",
    "DiLoCo": "local_steps",
    "PostLocalSGD": "local_steps",
    "ShardedOptimizer": "sharded",
    "DDPHookState": "hook",
    "ddp_hook": "hook",
    "dump_flight_record": "flight_record",
    "enable": "substitution",
    "register": "registration",
    "set_codec": "codecs",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    importlib.import_module(f"{__name__}.versions").require_torch()
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
