# SPDX-License-Identifier: Apache-2.0
"""Operations that are submitted in every step: all but what changes is made ready once."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_uint64
from typing import Any

from braid._abi import (
    Collective,
    DeviceBuffers,
    Operation,
    Reduction,
    Update,
    UpdateAction,
)
from braid._library import quick_library
from braid._registering import Memory

_OPERATION_BYTES = ctypes.sizeof(Operation)


class RepeatedOperation:
    """An all-reduce that each step submits: Job.repeated(). One thread at a time uses it."""

    __slots__ = (
        "_job",
        "_operation",
        "_operation_pointer",
        "_submit",
        "_ticket",
        "_ticket_pointer",
    )

    def __init__(self, job: Any, tensor: int, memory: Memory, reduction: int) -> None:
        self._job = job
        self._submit = quick_library().braid_submit
        self._operation = Operation(
            struct_size=_OPERATION_BYTES,
            collective=Collective.ALL_REDUCE,
            tensor=tensor,
            reduction=reduction,
            input=memory.address,
        )
        self._operation_pointer = byref(self._operation)
        self._ticket = c_uint64()
        self._ticket_pointer = byref(self._ticket)

    def set_reduction(self, reduction: int) -> None:
        self._operation.reduction = reduction

    def submit(self, step: int) -> int:
        """Submits the tensor, whose values lie in place, and returns the ticket."""
        job = self._job
        self._operation.step = step
        handle = job._handle or job._open()
        code = self._submit(handle, self._operation_pointer, self._ticket_pointer)
        if code:
            # Again, and without the interpreter's lock, where the daemon was not ready for it.
            call = job._library.braid_submit
            job._insist(lambda: call(job._open(), self._operation_pointer, self._ticket_pointer))
        return self._ticket.value


class RepeatedUpdate(RepeatedOperation):
    """The same of weights that the daemons update: Job.repeated_update().

    `update` is read by each submit(): its action, learning rate and count are changed in place.
    Where the action is FETCH there is no input.
    """

    __slots__ = ("_address", "update")

    def __init__(self, job: Any, tensor: int, memory: Memory) -> None:
        super().__init__(job, tensor, memory, Reduction.AVERAGE)
        self._address = memory.address
        self.update = Update()
        self._operation.update = ctypes.addressof(self.update)

    def move(self, memory: Memory) -> None:
        """From here on the input lies there."""
        self._address = memory.address

    def submit(self, step: int) -> int:
        is_fetch = self.update.action == UpdateAction.FETCH
        self._operation.input = None if is_fetch else self._address
        return super().submit(step)


class RepeatedDeviceOperation:
    """The same from and into memory of a GPU, which each step gives: Job.repeated_device().

    `update` is read by each submit().
    """

    __slots__ = ("_buffers", "_job", "_operation", "update")

    def __init__(self, job: Any, tensor: int, reduction: int, update: Update | None) -> None:
        self._job = job
        self.update = update
        self._operation = Operation(
            struct_size=_OPERATION_BYTES,
            collective=Collective.ALL_REDUCE,
            tensor=tensor,
            reduction=reduction,
            update=None if update is None else ctypes.addressof(update),
        )
        self._buffers = DeviceBuffers(struct_size=ctypes.sizeof(DeviceBuffers))

    def set_reduction(self, reduction: int) -> None:
        self._operation.reduction = reduction

    def submit(self, step: int, input: int, result: int, stream: int) -> int:
        """Queues the copy of the input behind what is queued on `stream` now, and returns the ticket.
        The result comes by Job.stream_wait(); 0: none is wanted."""
        self._operation.step = step
        buffers = self._buffers
        buffers.input, buffers.result, buffers.stream = input, result, stream
        # The call lets other threads run: it stands still while CUDA's queue of launches is full.
        return self._job.submit_buffers(self._operation, buffers)
