# SPDX-License-Identifier: Apache-2.0
"""What callers of a process group hand in, in the form that the engine takes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import ReduceOp

from braid import DType
from braid.torch.operations.carriage import carriage_of_copy, refuse_sparse

_ZERO = timedelta(0)
_MILLISECOND = timedelta(milliseconds=1)


def listed(tensors: Any) -> list[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else tensors


def flattened(outputs: Any) -> Sequence[torch.Tensor]:
    """The tensors of lists by rank; tensors by themselves are returned as they are."""
    if outputs and not isinstance(outputs[0], torch.Tensor):
        return [tensor for tensors in outputs for tensor in tensors]
    return outputs


def op_of(opts: Any) -> Any:
    """Callers give an options object, a ReduceOp, or nothing (which means the sum)."""
    if opts is None:
        return ReduceOp.SUM
    return getattr(opts, "reduceOp", opts)


def timeout_ms_of(opts: Any, timeout: timedelta | None) -> int:
    """0 (the group's own) unless the caller asks for another one."""
    if timeout is None:
        timeout = getattr(opts, "timeout", None)
    return timeout // _MILLISECOND if timeout is not None and timeout > _ZERO else 0


def carriage_of_copies(tensors: Sequence[torch.Tensor]) -> tuple[int, int]:
    """(dtype, count) to move tensors unchanged in one operation."""
    refuse_sparse(tensors)
    if len(tensors) == 1:
        return carriage_of_copy(tensors[0])
    return int(DType.UINT8), sum(tensor.nbytes for tensor in tensors)


def same_dtype_runs(tensors: list[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Neighbours of one dtype; one operation reduces one dtype."""
    runs: list[list[torch.Tensor]] = []
    for tensor in tensors:
        joins = runs and not tensor.is_sparse and runs[-1][0].dtype == tensor.dtype
        if joins and not runs[-1][0].is_sparse:
            runs[-1].append(tensor)
        else:
            runs.append([tensor])
    return runs


def packable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's elements in order, where it is."""
    return tensor if tensor.is_contiguous() else tensor.detach().contiguous()
