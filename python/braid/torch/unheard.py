# SPDX-License-Identifier: Apache-2.0
"""Variables of torch and NCCL that scripts' environments set: which braid hears, and a word about the others."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable

import torch

_log = logging.getLogger("braid")
_ON = ("1", "true", "yes", "on")
_NAN_CHECKS = ("TORCH_DIST_NAN_CHECK", "TORCH_NCCL_NAN_CHECK")
_PREFIXES = ("TORCH_NCCL_", "TORCH_GLOO_", "NCCL_")
_HEARD = frozenset({
    *_NAN_CHECKS, "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
    # What these ask for is what braid does: a wait ends with the error. torchrun sets the second pair.
    "TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING",
})  # fmt: skip
_told: set[str] = set()


def checks_nans() -> bool:
    """Whether collectives are to refuse inputs with a NaN."""
    return any(os.environ.get(name, "").lower() in _ON for name in _NAN_CHECKS)


def refuse_nans(inputs: Iterable[torch.Tensor], what: str, rank: int) -> None:
    for tensor in inputs:
        if (tensor.is_floating_point() or tensor.is_complex()) and tensor.isnan().any():
            raise RuntimeError(f"braid: rank {rank} gives a NaN to {what}, and {_named(_NAN_CHECKS)} is set")


def tell_unheard() -> None:
    """Once in a process."""
    if os.environ.get("TORCH_DISTRIBUTED_DEBUG", "").upper() == "DETAIL":
        _tell(
            "TORCH_DISTRIBUTED_DEBUG=DETAIL puts no checking group around braid's: the daemons compare "
            "kind, type, size and reduction of each operation on all ranks in any case"
        )
    unheard = sorted(
        name for name in os.environ if name.startswith(_PREFIXES) and name not in _HEARD
    )
    if unheard:
        _tell(f"braid does not hear {', '.join(unheard)}: its network is the daemon's, see braidd.yaml")


def _named(names: Iterable[str]) -> str:
    return next(name for name in names if os.environ.get(name, "").lower() in _ON)


def _tell(text: str) -> None:
    if text not in _told:
        _told.add(text)
        _log.warning("%s", text)
