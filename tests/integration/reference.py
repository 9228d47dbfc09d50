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


# What ranks give repeats itself, and so does what becomes of it: only so much is computed. Large arrays are copied as
# seldom as can be: a sanitizer makes each of them costly.
_PERIOD = 17
# What can be added to rank and salt: what is given is a piece of one of these, as long as has been needed.
_whole_numbers: dict[str, np.ndarray] = {}


def _piece(kind: str, begin: int, count: int) -> np.ndarray:
    if kind not in _whole_numbers or _whole_numbers[kind].size < begin + count:
        numbers = np.arange(begin + 2 * count, dtype=np.int64) * 7 % _PERIOD
        _whole_numbers[kind] = {"product": numbers % 3 + 1, "unsigned": numbers, "signed": numbers - 8}[kind]
        _whole_numbers[kind].flags.writeable = False
    return _whole_numbers[kind][begin : begin + count]


def _repeated(first: bytes, count: int) -> bytes:
    """All elements, made of the first ones: of one period if there are so many."""
    if count <= _PERIOD:
        return first
    return (first * (count // _PERIOD + 1))[: count * (len(first) // _PERIOD)]


def given(rank: int, count: int, salt: int, dtype: DType, reduction: Reduction) -> np.ndarray:
    """What a rank gives: small whole numbers, whose sums are exact in every element type."""
    kind = "product" if reduction == Reduction.PRODUCT else "unsigned" if dtype == DType.UINT8 else "signed"
    # The i-th is 7 i + 13 rank + 5 salt, modulo 17, and 5 * 7 is 1 there.
    return _piece(kind, (rank * 13 + salt * 5) * 5 % _PERIOD, count)


def encode(values: np.ndarray, dtype: DType) -> bytes:
    """What `given` made, or a piece of it, as elements of dtype."""
    return _repeated(_encode_in_full(values[:_PERIOD], dtype), values.size)


def reduced(inputs: list[np.ndarray], dtype: DType, reduction: Reduction) -> bytes:
    """The reduction of what `given` made, or of the same piece of each."""
    return _repeated(_reduced_in_full([one[:_PERIOD] for one in inputs], dtype, reduction), inputs[0].size)


def _encode_in_full(values: np.ndarray, dtype: DType) -> bytes:
    """float64 values are rounded to nearest even, as hardware does."""
    if dtype != DType.BFLOAT16:
        return values.astype(_NUMPY[dtype]).tobytes()
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16).tobytes()


def _reduced_in_full(inputs: list[np.ndarray], dtype: DType, reduction: Reduction) -> bytes:
    stacked = np.stack(inputs)
    if reduction == Reduction.MIN:
        return _encode_in_full(stacked.min(axis=0), dtype)
    if reduction == Reduction.MAX:
        return _encode_in_full(stacked.max(axis=0), dtype)
    if reduction == Reduction.PRODUCT:
        return _encode_in_full(stacked.prod(axis=0), dtype)
    total = stacked.sum(axis=0)
    if reduction == Reduction.SUM:
        return _encode_in_full(total, dtype)
    if dtype in (DType.INT32, DType.INT64, DType.UINT8):
        return _encode_in_full(np.trunc(total / len(inputs)), dtype)
    wide = np.float64 if dtype == DType.FLOAT64 else np.float32
    return _encode_in_full(total.astype(wide) / wide(len(inputs)), dtype)
