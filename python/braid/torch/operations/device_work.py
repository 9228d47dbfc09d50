# SPDX-License-Identifier: Apache-2.0
"""The Work of a collective on CUDA tensors: a wait lets a CUDA stream wait, and returns at once.

As with NCCL: wait() with a timeout holds the thread. After a failure the outputs hold NaN (integers:
all bits set), a wait that comes late enough raises the error, and so does the next collective.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import torch

from braid.torch.operations import devices
from braid.torch.operations.device_operations import DeviceOperation
from braid.torch.operations.devices import WAITS, SideStreams
from braid.torch.operations.futures import Failure, future_of
from braid.torch.operations.work import FutureWork

_ZERO = timedelta(0)


class DeviceWork(FutureWork):
    """One operation; `value` are its output tensors."""

    def __init__(self, value: Any, operation: DeviceOperation, device: torch.device) -> None:
        super().__init__()
        self._value = value
        self._operation = operation
        self._device = device
        self._lock = threading.Lock()
        self._future: torch.futures.Future | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        if timeout is not None and timeout > _ZERO:
            self._operation.hold(timeout.total_seconds())
        else:
            self._operation.let_current_stream_wait()
        return True

    def is_completed(self) -> bool:
        return self._operation.look()

    def is_success(self) -> bool:
        return self._operation.look() and self._operation.error is None

    def exception(self) -> Exception | None:
        self._operation.look()
        return self._operation.error

    def result(self) -> Any:
        self.wait()
        return self._value

    def source_rank(self) -> int:
        raise RuntimeError("only a receive has a source rank")

    def get_future(self) -> torch.futures.Future:
        """It has ended at once, with the output tensors: who waits for it, and its callbacks, come
        behind the operation on the GPU. Callbacks run in the thread that gives them."""
        with self._lock:
            if self._future is None:
                self._future = self._ended_future()
            return self._future

    def _ended_future(self) -> torch.futures.Future:
        promise = devices.cuda.future([self._device])
        # On a stream of its own, so that the caller's goes on.
        with SideStreams(WAITS).on(self._device):
            try:
                self._operation.let_current_stream_wait()
            except Exception as error:
                promise.set_result(Failure(error))
                return future_of(promise, None)
            promise.set_result(self._value)
        return promise
