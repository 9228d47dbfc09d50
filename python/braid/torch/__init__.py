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
    "Acco": "methods.acco",
    "BraidProcessGroup": "group.process_group",
    "DelayedOptimizer": "methods.delayed",
    "DiLoCo": "methods.local_steps",
    "KFAC": "kfac.preconditioner",
    "Homes": "placement.homes",
    "PostLocalSGD": "methods.local_steps",
    "ShardedOptimizer": "methods.sharded",
    "DDPHookState": "ddp.hook",
    "ddp_hook": "ddp.hook",
    "dump_flight_record": "operations.flight_record",
    "enable": "attach.substitution",
    "placed": "placement.optimizer",
    "register": "attach.registration",
    "set_codec": "ddp.codecs",
}

__all__ = sorted(_HOMES)

_OLDEST_TORCH = (2, 7)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_torch()
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def require_torch() -> None:
    """Raises where somebody asks for braid: an older torch would fail later, and not say why."""
    import torch

    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < _OLDEST_TORCH:
        oldest = ".".join(str(part) for part in _OLDEST_TORCH)
        raise RuntimeError(
            f"braid needs torch {oldest} or later, and this is torch {torch.__version__}"
        )
