# SPDX-License-Identifier: Apache-2.0
"""How large the smallest planned tensor is, which takes neighbouring small gradients.

Each planned tensor costs the trainer a call, whatever its size. So it is as large as it must be to
pay for that: a hundredth of the model, and no less than what travels in the time that a call takes
here, which is measured once for each process group. To wait for the neighbours costs no more than
the call would, and a hundredth of the model delays the last reduction by a hundredth of what all
gradients take.
"""

from __future__ import annotations

import logging
import os
import time
import weakref
from collections.abc import Sequence
from typing import Any

import torch

from braid import DType, Reduction
from braid.torch.operations.engine import ALL_REDUCE, BROADCAST
from braid.torch.operations.packing import unpack_whole
from braid.torch.operations.work import BraidWork

_log = logging.getLogger("braid")
_VARIABLE = "BRAID_SMALLEST_TENSOR"
TENSORS_OF_A_MODEL = 100
# What a measurement may say, in powers of 2: noise shall not make other tensors in each run.
_BYTES_MIN, _BYTES_MAX = 1 << 14, 1 << 20
# The two sizes that are measured, and how many all-reduces of them are under way at once.
_SMALL_BYTES, _SMALL_OPERATIONS = 1 << 12, 8
_LARGE_BYTES, _LARGE_OPERATIONS = 1 << 17, 2
_ROUNDS = 3

_measured: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def smallest_tensor_bytes(group: Any, parameters: Sequence[torch.Tensor]) -> int:
    """For the gradients of these parameters; the same on all ranks, which all call it together.

    BRAID_SMALLEST_TENSOR, of rank 0, says it instead, in bytes; 0: each gradient by itself.
    """
    if group not in _measured:
        _measured[group] = _agreed(group)
    floor = _measured[group]
    if floor < 0:
        return -1 - floor
    return max(floor, sum(parameter.nbytes for parameter in parameters) // TENSORS_OF_A_MODEL)


def bytes_of_a_call(small_seconds: float, large_seconds: float) -> int:
    """What travels in the time of a call, of what one operation takes of the two sizes."""
    seconds_per_byte = (large_seconds - small_seconds) / (_LARGE_BYTES - _SMALL_BYTES)
    if seconds_per_byte <= 0:
        return _BYTES_MAX
    found = int(min(max(small_seconds / seconds_per_byte, _BYTES_MIN), _BYTES_MAX))
    return 1 << (found - 1).bit_length()


def _agreed(group: Any) -> int:
    """What rank 0 has measured; or -1 - what its environment says."""
    small = _seconds(group, _SMALL_BYTES, _SMALL_OPERATIONS)
    large = _seconds(group, _LARGE_BYTES, _LARGE_OPERATIONS)
    chosen = _chosen()
    value = torch.tensor([bytes_of_a_call(small, large) if chosen is None else -1 - chosen])
    is_root = group.rank() == 0
    work = BraidWork(value)
    group.engine.run(
        BROADCAST, int(DType.INT64), 1, [value] if is_root else [],
        None if is_root else unpack_whole([value]), work,
    )  # fmt: skip
    work.wait()
    return int(value)


def _chosen() -> int | None:
    text = os.environ.get(_VARIABLE, "")
    if text.isascii() and text.isdecimal():
        return min(int(text), 1 << 40)
    if text:
        _log.warning("%s is a number of bytes, not '%s': it is measured instead", _VARIABLE, text)
    return None


def _seconds(group: Any, nbytes: int, operations: int) -> float:
    """What one of so many all-reduces at once takes, from the call to the end of its future."""
    tensors = [torch.zeros(nbytes // 4) for _ in range(operations)]
    best = float("inf")
    for _ in range(_ROUNDS):
        begin = time.perf_counter()
        works = []
        for tensor in tensors:
            work = BraidWork(tensor)
            group.engine.run(
                ALL_REDUCE, int(DType.FLOAT32), tensor.numel(), [tensor], unpack_whole([tensor]),
                work, reduction=int(Reduction.SUM),
            )  # fmt: skip
            works.append(work)
        for work in works:
            work.wait()
        best = min(best, time.perf_counter() - begin)
    return best / operations
