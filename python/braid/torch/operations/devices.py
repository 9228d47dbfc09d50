# SPDX-License-Identifier: Apache-2.0
"""Everything that this package knows of CUDA: what is on a GPU, streams, and what waits for what.

All code asks `devices.cuda`. Tests put another object in its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

import torch

from braid import Job

# Priorities of streams for copies beside the computing, and for waiting for the network. torch has 32
# streams of each priority and hands them out in turn: with two priorities the two are never the same.
COPIES, WAITS = -1, 0


class Cuda:
    """CUDA as torch has it. Any thread; streams are those that are current in the calling thread."""

    def is_there(self) -> bool:
        """Whether this process has a GPU."""
        return torch.cuda.is_available()

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies in the memory of a GPU."""
        return tensor.is_cuda

    def devices_of(self, tensors: torch.Tensor | Iterable[torch.Tensor]) -> list[torch.device]:
        """The GPUs that they are on."""
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        found = {tensor.device for tensor in tensors if tensor.is_cuda}
        return sorted(found, key=lambda device: device.index) if len(found) > 1 else list(found)

    def device_of(self, tensor: torch.Tensor) -> torch.device:
        """Also of a tensor in the CPU's memory."""
        return tensor.device

    def vector(self, count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """A new one, which is not filled. On a GPU the current stream may use it at once."""
        return torch.empty(count, dtype=dtype, device=device)

    def current_stream(self, device: torch.device) -> int:
        """The handle of a CUstream."""
        return torch.cuda.current_stream(device).cuda_stream

    def new_stream(self, device: torch.device, priority: int) -> Any:
        return torch.cuda.Stream(device, priority=priority)

    def under(self, stream: Any) -> AbstractContextManager[Any]:
        """Within it that stream is the current one, and its device the current device."""
        return torch.cuda.stream(stream)

    def let_wait(self, job: Job, ticket: int, stream: int) -> None:
        """Lets a stream, the current one, wait for an operation's result."""
        job.stream_wait(ticket, stream)

    def mark(self, device: torch.device) -> Any:
        """Where the current stream is now; `query()` says whether that is done."""
        return torch.cuda.current_stream(device).record_event()

    def wait_for_mark(self, device: torch.device, mark: Any) -> None:
        """Lets the current stream wait for a mark."""
        torch.cuda.current_stream(device).wait_event(mark)

    def future(self, devices: list[torch.device]) -> torch.futures.Future:
        """One whose value may be on these GPUs: who waits for it, and its callbacks, come behind what
        is queued on the streams that are current when it is set."""
        return torch.futures.Future(devices=devices or None)

    def hold(self, devices: Iterable[torch.device]) -> None:
        """Holds the thread until what the current streams were given is done."""
        for device in devices:
            torch.cuda.current_stream(device).synchronize()


cuda = Cuda()


class SideStreams:
    """Streams of one owner, one for each device, beside those of the script. Any thread."""

    def __init__(self, priority: int) -> None:
        """COPIES or WAITS."""
        self._priority = priority
        self._streams: dict[torch.device, Any] = {}

    def on(self, device: torch.device) -> AbstractContextManager[Any]:
        """Within it the owner's stream is the current one."""
        stream = self._streams.get(device)
        if stream is None:
            stream = self._streams.setdefault(device, cuda.new_stream(device, self._priority))
        return cuda.under(stream)


class StreamMarks:
    """Where the current streams of some GPUs are now, for what comes on other streams later."""

    def __init__(self, devices: Iterable[torch.device]) -> None:
        self._marks = [(device, cuda.mark(device)) for device in devices]

    def let_current_streams_wait(self) -> None:
        for device, mark in self._marks:
            cuda.wait_for_mark(device, mark)
