# SPDX-License-Identifier: Apache-2.0
"""What a job is given once and keeps: its tensors, and memory for its inputs."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from ctypes import byref, c_uint32, c_void_p
from dataclasses import dataclass
from typing import Any

from braid import _abi
from braid._abi import DType
from braid._arguments import as_number, as_text
from braid._questions import wait_for_answer


@dataclass(frozen=True)
class TensorSpec:
    """A tensor to register. `backward_order` 0 is the gradient that is ready first.

    `planned` tensors of one registration are a model's gradients, which the daemon may merge: each
    step submits all of them, each on its own, before it waits for any. `codec` says how a planned
    float32 tensor travels between nodes: "int8", "topk:ratio=0.01"; empty: as it is.

    With `state_slots` (1 to 3, the same for all of a registration) the planned tensors are weights
    that the daemons update: what is submitted are gradients, and what comes back are new weights.
    Each operation then has an Update, and all of a step have one action.
    """

    name: str
    dtype: DType = DType.FLOAT32
    count: int = 0
    backward_order: int | None = None
    dynamic: bool = False
    planned: bool = False
    codec: str = ""
    state_slots: int = 0


class Memory:
    """Bytes in an input arena: what is submitted from here is not copied."""

    __slots__ = ("address", "nbytes")

    def __init__(self, address: int, nbytes: int) -> None:
        self.address = address
        self.nbytes = nbytes

    def view(self) -> memoryview:
        """The bytes, writable; valid until Job.free or Job.close."""
        return memoryview((ctypes.c_ubyte * self.nbytes).from_address(self.address)).cast("B")


class RegisteringMixin:
    """The part of Job that registers tensors and hands out memory."""

    _library: Any
    _open: Any
    _check: Any
    _insist: Any
    # Held during a registration, which goes on where a signal's handler ends the wait for it.
    _registering: threading.Lock
    _specs: dict[int, TensorSpec]

    def register(self, tensors: Sequence[TensorSpec]) -> list[int]:
        """Registers tensors, all or none, and returns their handles."""
        options = (_abi.TensorOptions * len(tensors))()
        for option, tensor in zip(options, tensors):
            order = tensor.backward_order
            option.struct_size = ctypes.sizeof(_abi.TensorOptions)
            option.name = as_text("a tensor's name", tensor.name)
            option.dtype = tensor.dtype
            option.count = as_number(f"the count of tensor {tensor.name!r}", tensor.count, 64)
            option.backward_order = _abi.NO_ORDER if order is None else order
            option.dynamic = tensor.dynamic
            option.planned = tensor.planned
            option.codec = as_text(f"the codec of tensor {tensor.name!r}", tensor.codec) or None
            option.state_slots = tensor.state_slots
        handles = (c_uint32 * len(tensors))()
        self._open()
        wait_for_answer(lambda: self._register(options, handles))
        self._specs.update(zip(handles, tensors))
        return list(handles)

    def _register(self, options: Any, handles: Any) -> int:
        with self._registering:
            return self._library.braid_register(self._open(), options, len(options), handles)

    def unregister(self, tensors: Sequence[int]) -> None:
        """Takes all tensors of one registration out of the job again: its handles, as register()
        gave them. All of their tickets must be released. Every rank does it at its own time, when it
        submits none of them any more. Their names should not be used again in this job."""
        handles = (c_uint32 * len(tensors))(*tensors)
        self._open()
        wait_for_answer(lambda: self._unregister(handles))
        for handle in tensors:
            self._specs.pop(handle, None)

    def _unregister(self, handles: Any) -> int:
        with self._registering:
            return self._library.braid_unregister(self._open(), handles, len(handles))

    def allocate(self, nbytes: int) -> Memory:
        """Memory in an input arena."""
        address = c_void_p()
        self._insist(lambda: self._library.braid_allocate(self._open(), nbytes, byref(address)))
        return Memory(address.value or 0, nbytes)

    def free(self, memory: Memory) -> None:
        self._check(self._library.braid_free(self._open(), memory.address))
