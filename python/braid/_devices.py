# SPDX-License-Identifier: Apache-2.0
"""Operations on memory of a GPU: braid.h, "Device buffers"."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from ctypes import byref, c_uint32, c_uint64, c_void_p
from typing import Any, NamedTuple

from braid._abi import DEVICE_STREAM_WAITS, DeviceBuffers, Operation, Update
from braid._arguments import milliseconds
from braid._questions import wait_for_answer

_OPERATION_BYTES = ctypes.sizeof(Operation)
_BUFFERS_BYTES = ctypes.sizeof(DeviceBuffers)
_REASON_BYTES = 1024


class DeviceMemory(NamedTuple):
    """Where one operation's data lie: addresses of one GPU, 0 for none, and the handle of a CUDA
    stream behind whose work of now the input is there and the result may be overwritten.

    With `streams_wait` copies of the result are queued at once, so that streams can wait for them.
    Without it they are queued by stream_wait().
    """

    input: int
    result: int
    stream: int
    result_of_rank: Sequence[int] = ()
    streams_wait: bool = False


class DeviceMixin:
    """The part of Job that submits from GPUs. Its tickets go to test(), wait() and what stands here."""

    _library: Any
    _open: Any
    _check: Any
    _insist: Any
    # Held while levels are opened, which goes on where a signal's handler ends the wait for it.
    _opening_levels: threading.Lock

    def open_levels(self, stream: int, seconds: float | None = None) -> tuple[int, str]:
        """Finds out with all ranks of the job how collectives of GPUs go. Each rank calls it once, at
        the same point, before it submits the first one; it waits for the others.

        2: in two levels, NCCL within each node and braid between nodes; 1: over braid alone; 0: not
        from the GPU, because libbraid cannot take memory of some rank's. The second is why it is not
        2. `stream` is a CUDA stream of this rank's GPU.
        """
        levels = c_uint32()
        reason = ctypes.create_string_buffer(_REASON_BYTES)
        self._open()
        wait_for_answer(
            lambda: self._open_levels(stream or None, milliseconds(seconds or None), levels, reason)
        )
        return levels.value, reason.value.decode(errors="replace")

    def _open_levels(self, stream: int | None, timeout_ms: int, levels: Any, reason: Any) -> int:
        with self._opening_levels:
            return self._library.braid_open_levels(
                self._open(), stream, timeout_ms, byref(levels), reason, _REASON_BYTES
            )

    def submit_device(
        self, collective: int, tensor: int, step: int, reduction: int, root: int, dtype: int,
        timeout_ms: int, count: int, memory: DeviceMemory, input_splits: Any = None,
        output_splits: Any = None, update: Update | None = None,
    ) -> int:  # fmt: skip
        """submit_raw() from a GPU. Returns when the copies are queued, before any of them has begun.

        A dynamic tensor that is submitted so must be submitted in no other way; its steps are
        numbered by libbraid.
        """
        operation = Operation(
            _OPERATION_BYTES, collective, tensor, step, reduction, root, dtype, timeout_ms, count,
            None, ctypes.cast(input_splits, c_void_p) if input_splits else None,
            ctypes.cast(output_splits, c_void_p) if output_splits else None,
            ctypes.addressof(update) if update is not None else None,
        )  # fmt: skip
        by_rank = memory.result_of_rank
        places = (c_uint64 * len(by_rank))(*by_rank) if by_rank else None
        buffers = DeviceBuffers(
            _BUFFERS_BYTES, memory.input, memory.result,
            ctypes.cast(places, c_void_p) if places else None, memory.stream,
            DEVICE_STREAM_WAITS if memory.streams_wait else 0,
        )  # fmt: skip
        return self.submit_buffers(operation, buffers, timeout_ms)

    def submit_buffers(
        self, operation: Operation, buffers: DeviceBuffers, timeout_ms: int = 0
    ) -> int:
        """The same with the structs as braid.h has them."""
        ticket = c_uint64()
        self._insist(
            lambda: self._library.braid_submit_device(
                self._open(), byref(operation), byref(buffers), byref(ticket)
            ),
            timeout_ms,
        )
        return ticket.value

    def stream_wait(self, ticket: int, stream: int) -> None:
        """Lets a CUDA stream wait for the results, and returns. Without `streams_wait` it holds the
        thread until the operation has ended, and raises its error."""
        self._insist(lambda: self._library.braid_stream_wait(self._open(), ticket, stream))

    def device_release(self, ticket: int) -> None:
        """At any time after the submission. The memory is in use until test() says that the operation
        has ended, or for a stream that waits for it."""
        self._check(self._library.braid_device_release(self._open(), ticket))
