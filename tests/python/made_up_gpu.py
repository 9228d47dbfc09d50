# SPDX-License-Identifier: Apache-2.0
"""CPU tensors that count as those of a GPU: what stands in for CUDA in tests, which no GPU is needed for.

A tensor is "on the GPU" if it lies in memory that the double has given out. Computing there is the CPU's, so it is
done when the next line runs: a stream never has anything queued but libbraid's waits, and where torch's kernels
would queue up behind such a wait, the double waits for it. That is all it does at those places, so a wait that is
left out shows as a wrong number.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch

from braid.torch.operations import devices

DEADLINE_S = 120
GPU = torch.device("cuda", 0)


class MadeUpCuda(devices.Cuda):
    """For memory of this process; `allocate` gives so many bytes as a ctypes array."""

    def __init__(self, allocate: Callable[[int], Any] | None = None) -> None:
        self._allocate = allocate or (lambda nbytes: (ctypes.c_ubyte * nbytes)())
        self._places: set[int] = set()
        self._current = threading.local()
        self._numbers = itertools.count(1)
        self.main = self.new_stream(GPU, devices.COPIES)
        # Threads that were held for what a stream had, beside those that wait for libbraid here.
        self.holds_of: list[str] = []

    def put(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy on the GPU, laid out alike."""
        if tensor.is_contiguous():
            there = self._bytes(tensor.nbytes)[: tensor.nbytes].view(tensor.dtype)
            return there.view(tensor.shape).copy_(tensor)
        size = tensor.untyped_storage().nbytes()
        there = self._bytes(size).view(tensor.dtype)
        there = torch.as_strided(there, tensor.size(), tensor.stride(), tensor.storage_offset())
        return there.copy_(tensor)

    # What devices.Cuda has.

    def holds(self, tensor: torch.Tensor) -> bool:
        return tensor.layout is torch.strided and tensor.untyped_storage().data_ptr() in self._places

    def devices_of(self, tensors: Any) -> list[torch.device]:
        listed = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        return [GPU] if any(self.holds(tensor) for tensor in listed) else []

    def device_of(self, tensor: torch.Tensor) -> torch.device:
        return GPU if self.holds(tensor) else tensor.device

    def vector(self, count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        if device != GPU:
            return super().vector(count, dtype, device)
        # What nobody has written shows.
        return self._bytes(count * dtype.itemsize).fill_(0xA5)[: count * dtype.itemsize].view(dtype)

    def current_stream(self, device: torch.device) -> int:
        return self._now().handle

    def new_stream(self, device: torch.device, priority: int) -> Any:
        return SimpleNamespace(handle=next(self._numbers))

    @contextlib.contextmanager
    def under(self, stream: Any) -> Iterator[None]:
        before, self._current.stream = self._now(), stream
        try:
            yield
        finally:
            self._current.stream = before

    def let_wait(self, job: Any, ticket: int, stream: int) -> None:
        job.stream_wait(ticket, stream)
        self.settle(job, ticket)

    def settle(self, job: Any, ticket: int) -> None:
        """Until the current stream has nothing to do any more."""
        end = time.monotonic() + DEADLINE_S
        while not job.arrive(ticket):
            assert time.monotonic() < end, f"ticket {ticket} of job {job.name} does not end"
            if job.world.failure:
                return
            time.sleep(0.0005)

    def mark(self, device: torch.device) -> Any:
        return SimpleNamespace(query=lambda: True, synchronize=lambda: None)

    def wait_for_mark(self, device: torch.device, mark: Any) -> None:
        pass

    def future(self, devices: list[torch.device]) -> torch.futures.Future:
        return torch.futures.Future()

    def hold(self, devices: Any) -> None:
        if list(devices):
            self.holds_of.append(threading.current_thread().name)

    def _now(self) -> Any:
        return getattr(self._current, "stream", None) or self.main

    def _bytes(self, nbytes: int) -> torch.Tensor:
        memory = self._allocate(max(1, nbytes))
        place = ctypes.addressof(memory)
        self._places.add(place)
        weakref.finalize(memory, self._places.discard, place).atexit = False
        return torch.frombuffer(memory, dtype=torch.uint8)
