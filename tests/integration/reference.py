# SPDX-License-Identifier: Apache-2.0
"""What every collective must return, computed without braid. Trainers import it."""

import numpy as np

from braid import DType, Reduction

_NUMPY = {
    DType.FLOAT32: np.float32,
    DType.FLOAT64: np.float64,
    DType.FLOAT16: np.float16,
    DType.INT32: np.int32,
    DType.INT64: np.int64,
    DType.UINT8: np.uint8,
}


def encode(values: np.ndarray, dtype: DType) -> bytes:
    """Values as elements of dtype; float64 values are rounded to nearest even, as hardware does."""
    if dtype != DType.BFLOAT16:
        return values.astype(_NUMPY[dtype]).tobytes()
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16).tobytes()


def given(rank: int, count: int, salt: int, dtype: DType, reduction: Reduction) -> np.ndarray:
    """What a rank gives: small whole numbers, whose sums are exact in every element type."""
    numbers = (np.arange(count, dtype=np.int64) * 7 + rank * 13 + salt * 5) % 17
    if reduction == Reduction.PRODUCT:
        return numbers % 3 + 1
    return numbers if dtype == DType.UINT8 else numbers - 8


def reduced(inputs: list[np.ndarray], dtype: DType, reduction: Reduction) -> bytes:
    stacked = np.stack(inputs)
    if reduction == Reduction.MIN:
        return encode(stacked.min(axis=0), dtype)
    if reduction == Reduction.MAX:
        return encode(stacked.max(axis=0), dtype)
    if reduction == Reduction.PRODUCT:
        return encode(stacked.prod(axis=0), dtype)
    total = stacked.sum(axis=0)
    if reduction == Reduction.SUM:
        return encode(total, dtype)
    if dtype in (DType.INT32, DType.INT64, DType.UINT8):
        return encode(np.trunc(total / len(inputs)), dtype)
    wide = np.float64 if dtype == DType.FLOAT64 else np.float32
    return encode(total.astype(wide) / wide(len(inputs)), dtype)
