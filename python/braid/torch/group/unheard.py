# SPDX-License-Identifier: Apache-2.0
"""Variables that scripts' environments set: which of torch's and NCCL's braid hears, and a word about the
others; and which of braid's own had nothing to do."""

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

# braid's own variables: what they are for, and which values ask for nothing.
_PURPOSES = {
    "BRAID_CODEC": "it is for float32 gradients of DistributedDataParallel, from the third iteration on, "
    "that braid's hook reduces (BRAID_ENABLE=1 registers it)",
    "BRAID_UPDATE": "it is for scripts whose optimizer is torch.optim.SGD",
}
_ASKS_FOR_NOTHING = ("", "0", "none", "off")
_used: set[str] = set()


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


def note_use(variable: str) -> None:
    """What this variable asks for is done."""
    _used.add(variable)


def tell_unused() -> None:
    """At the end of the default process group: who has set a variable should know if it did nothing."""
    for variable, purpose in _PURPOSES.items():
        value = os.environ.get(variable, "")
        if value.lower() not in _ASKS_FOR_NOTHING and variable not in _used:
            _tell(f"{variable}={value} was not used: {purpose}")


def _named(names: Iterable[str]) -> str:
    return next(name for name in names if os.environ.get(name, "").lower() in _ON)


def _tell(text: str) -> None:
    if text not in _told:
        _told.add(text)
        _log.warning("%s", text)
