# SPDX-License-Identifier: Apache-2.0
"""What braid carries of torch's element types and reductions, and under which of its own names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch.distributed import ReduceOp

from braid import DType, Reduction


class Carriage(NamedTuple):
    """How a tensor travels: as `per_element` values of `dtype`, combined by `reduction`."""

    dtype: int
    per_element: int
    reduction: int


_DTYPES = {
    torch.float32: DType.FLOAT32,
    torch.float64: DType.FLOAT64,
    torch.float16: DType.FLOAT16,
    torch.bfloat16: DType.BFLOAT16,
    torch.int32: DType.INT32,
    torch.int64: DType.INT64,
    torch.uint8: DType.UINT8,
}

_RedOpType = ReduceOp.RedOpType

_REDUCTIONS = {
    _RedOpType.SUM: Reduction.SUM,
    _RedOpType.AVG: Reduction.AVERAGE,
    _RedOpType.MIN: Reduction.MIN,
    _RedOpType.MAX: Reduction.MAX,
    _RedOpType.PRODUCT: Reduction.PRODUCT,
}

# A bool is a byte that is 0 or 1, and a sum of bools is their "or", as in NCCL.
_BOOL_REDUCTIONS = {
    _RedOpType.SUM: Reduction.MAX,
    _RedOpType.MAX: Reduction.MAX,
    _RedOpType.BOR: Reduction.MAX,
    _RedOpType.PRODUCT: Reduction.MIN,
    _RedOpType.MIN: Reduction.MIN,
    _RedOpType.BAND: Reduction.MIN,
}

# Adding complex numbers is adding their parts; nothing else about them is that simple.
_COMPLEX = {torch.complex64: DType.FLOAT32, torch.complex128: DType.FLOAT64}
_COMPLEX_REDUCTIONS = {_RedOpType.SUM: Reduction.SUM, _RedOpType.AVG: Reduction.AVERAGE}


def _tabulate() -> dict[tuple[torch.dtype, int], Carriage]:
    """By numbers of operations: to look for torch's own objects takes three times as long."""
    table = {
        (torch_dtype, int(op)): Carriage(int(dtype), 1, int(reduction))
        for torch_dtype, dtype in _DTYPES.items()
        for op, reduction in _REDUCTIONS.items()
    }
    for op, reduction in _BOOL_REDUCTIONS.items():
        table[torch.bool, int(op)] = Carriage(int(DType.UINT8), 1, int(reduction))
    for torch_dtype, dtype in _COMPLEX.items():
        for op, reduction in _COMPLEX_REDUCTIONS.items():
            table[torch_dtype, int(op)] = Carriage(int(dtype), 2, int(reduction))
    return table


_TABLE = _tabulate()
_BYTES = int(DType.UINT8)
_INT_DTYPES = {torch_dtype: int(dtype) for torch_dtype, dtype in _DTYPES.items()}


def carriage_of_reduction(dtype: torch.dtype, op: Any) -> Carriage | None:
    """How braid reduces tensors of `dtype` with `op`; None if it does not."""
    # A ReduceOp wraps its type in `op`; callers may give either.
    return _TABLE.get((dtype, int(getattr(op, "op", op))))


def refuse_sparse(tensors: Iterable[torch.Tensor]) -> None:
    for tensor in tensors:
        if tensor.layout is not torch.strided:
            raise TypeError(
                f"braid: a tensor has the layout {tensor.layout}, which only all_reduce with SUM "
                "takes: give a dense one (tensor.to_dense())"
            )


def carriage_of_copy(tensor: torch.Tensor) -> tuple[int, int]:
    """(dtype, count) for moving a tensor unchanged: what braid has no type for goes as bytes."""
    dtype = _INT_DTYPES.get(tensor.dtype)
    return (_BYTES, tensor.nbytes) if dtype is None else (dtype, tensor.numel())


def carriage_of_elements(torch_dtype: torch.dtype) -> tuple[int, int]:
    """(dtype, values per element) for moving elements unchanged, likewise."""
    dtype = _INT_DTYPES.get(torch_dtype)
    return (_BYTES, torch_dtype.itemsize) if dtype is None else (dtype, 1)


def dtype_of(dtype: torch.dtype) -> DType | None:
    """braid's own element type for a torch one."""
    return _DTYPES.get(dtype)
