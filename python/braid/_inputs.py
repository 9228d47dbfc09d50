# SPDX-License-Identifier: Apache-2.0
"""What an operation reads: where it lies, and whether that is as much as the operation takes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_uint64
from typing import Any

from braid._abi import Collective, DType
from braid._registering import Memory, TensorSpec
from braid.errors import InvalidArgumentError

# Formats of the buffer protocol, for inputs that say themselves what they hold.
_DTYPE_OF_FORMAT = {
    "f": DType.FLOAT32,
    "d": DType.FLOAT64,
    "e": DType.FLOAT16,
    "i": DType.INT32,
    "q": DType.INT64,
    "l": DType.INT64,
    "B": DType.UINT8,
}
_FLOAT_FORMATS = ("f", "d", "e")
_IN_BLOCKS = (Collective.REDUCE_SCATTER, Collective.SCATTER, Collective.ALL_TO_ALL)


class Input:
    """The input of one operation: `address`, `dtype` and `count` as braid_operation has them.

    `value` is None, an address, Memory, or an object with a contiguous buffer, which must hold all
    that the operation reads. dtype and count of a dynamic tensor follow from a buffer where they
    are not given.
    """

    __slots__ = ("address", "count", "dtype", "nbytes")

    def __init__(self, value: Any, dtype: int | None, count: int | None, blocks: int) -> None:
        self.nbytes: int | None = None  # None: not known
        if value is None or isinstance(value, (int, Memory)):
            self.address = value.address if isinstance(value, Memory) else value
            self.dtype, self.count = dtype or 0, count or 0
            return
        view = memoryview(value)
        if not view.c_contiguous:
            raise InvalidArgumentError("the input of an operation must be one contiguous block")
        given = _DTYPE_OF_FORMAT.get(view.format)
        if dtype is None:
            dtype = given
            if dtype is None:
                raise InvalidArgumentError(
                    f"elements of format {view.format!r} have no braid dtype; give dtype and count"
                )
        elif view.format in _FLOAT_FORMATS and given != dtype:
            raise InvalidArgumentError(
                f"the input holds {DType(given).name}, and the operation is of {DType(dtype).name}"
            )
        if count is None:
            count = view.nbytes // DType(dtype).itemsize // blocks
        self.nbytes = view.nbytes
        if view.readonly:
            # ctypes hands out addresses of writable buffers only; braid copies this one anyway.
            view = memoryview(bytearray(view))
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(view.cast("B")))
        self.dtype, self.count = dtype, count

    def check_holds(self, elements: int) -> None:
        """Raises if a buffer is too small; of other inputs libbraid knows where the arena ends."""
        needed = elements * DType(self.dtype).itemsize
        if self.nbytes is not None and self.nbytes < needed:
            raise InvalidArgumentError(
                f"the input has {self.nbytes} bytes, and the operation reads {needed}: "
                f"{elements} elements of {DType(self.dtype).name}"
            )


def input_of(
    value: Any,
    collective: int,
    spec: TensorSpec | None,
    dtype: int | None,
    count: int | None,
    splits: Any,
    world_size: int,
    is_root: bool,
) -> Input:
    """The input of an operation on the tensor that was registered as `spec`."""
    blocks = world_size if collective in _IN_BLOCKS else 1
    if spec is not None and not spec.dynamic:
        dtype, count = spec.dtype, spec.count
    made = Input(value, dtype, count, blocks)
    is_read = is_root or collective not in (Collective.BROADCAST, Collective.SCATTER)
    if is_read and collective != Collective.BARRIER:
        made.check_holds(made.count * blocks if splits is None else sum(splits))
    return made


def splits_of(elements: Sequence[int] | None, world_size: int) -> Any:
    """The elements of each rank's part in an all-to-all, as submit_raw() takes them."""
    if elements is None:
        return None
    if len(elements) != world_size:
        raise InvalidArgumentError(f"splits of {len(elements)} ranks; the job has {world_size}")
    return (c_uint64 * world_size)(*elements)
