# SPDX-License-Identifier: Apache-2.0
"""Copies between CUDA tensors and the memory of libbraid: straight, with no CPU tensor in between.

A CPU tensor of many megabytes is memory that is new each time. The kernel then finds and clears its
pages one by one while the GPU, and the other ranks, wait: several times as long as the copy takes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import torch


def memory_as(address: int, tensor: torch.Tensor) -> torch.Tensor:
    """Memory as a contiguous CPU tensor of that shape and type; not of an empty one."""
    raw = (ctypes.c_ubyte * tensor.nbytes).from_address(address)
    return torch.frombuffer(raw, dtype=tensor.dtype).view(tensor.shape)


def devices_of(tensors: torch.Tensor | Iterable[torch.Tensor]) -> list[torch.device]:
    """The GPUs that they are on."""
    if isinstance(tensors, torch.Tensor):
        tensors = [tensors]
    return sorted({t.device for t in tensors if t.is_cuda}, key=lambda device: device.index)


def check_has_memory(tensors: Iterable[torch.Tensor]) -> None:
    """Raises for tensors that are neither in the CPU's memory nor in a GPU's."""
    for tensor in tensors:
        if not (tensor.is_cuda or tensor.is_cpu):
            raise ValueError(
                f"braid carries tensors on CPUs and CUDA devices, and this one is on '{tensor.device}': "
                "give it memory first (torch.empty_like(tensor, device='cpu'), module.to_empty())"
            )


def wait_for_streams(devices: Iterable[torch.device]) -> None:
    """Until what the current streams were given is done: for other streams, threads and the CPU."""
    for device in devices:
        torch.cuda.current_stream(device).synchronize()


class StreamMarks:
    """Where the current streams of some GPUs are now, for what comes on other streams later."""

    def __init__(self, devices: Iterable[torch.device]) -> None:
        self._events = [
            (device, torch.cuda.current_stream(device).record_event()) for device in devices
        ]

    def let_current_streams_wait(self) -> None:
        for device, event in self._events:
            torch.cuda.current_stream(device).wait_event(event)


class SideStreams:
    """For copies to GPUs beside what the training thread has queued there. One thread uses them."""

    def __init__(self) -> None:
        self._streams: dict[torch.device, torch.cuda.Stream] = {}

    def copy(self, to: torch.Tensor, given: torch.Tensor) -> None:
        """Between contiguous tensors of one type; `to` is on a GPU, and nobody uses it meanwhile."""
        stream = self._streams.get(to.device)
        if stream is None:
            stream = self._streams[to.device] = torch.cuda.Stream(to.device)
        with torch.cuda.stream(stream):
            to.copy_(given, non_blocking=True)
        stream.synchronize()
