# SPDX-License-Identifier: Apache-2.0
"""Copies between CUDA tensors and the memory of libbraid that the calling thread waits for.

This is the way of CUDA tensors where libbraid cannot take them from the GPU itself (see
device_operations.py), and within callbacks of futures.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import torch


def memory_as(address: int, tensor: torch.Tensor) -> torch.Tensor:
    """Memory as a contiguous CPU tensor of that shape and type; not of an empty one.

    A new CPU tensor of many megabytes would be memory whose pages the kernel finds and clears one by
    one: several times as long as the copy takes.
    """
    raw = (ctypes.c_ubyte * tensor.nbytes).from_address(address)
    return torch.frombuffer(raw, dtype=tensor.dtype).view(tensor.shape)


def check_has_memory(tensors: Iterable[torch.Tensor]) -> None:
    """Raises for tensors that are neither in the CPU's memory nor in a GPU's."""
    for tensor in tensors:
        if not (tensor.is_cuda or tensor.is_cpu):
            raise ValueError(
                f"braid carries tensors on CPUs and CUDA devices, and this one is on '{tensor.device}': "
                "give it memory first (torch.empty_like(tensor, device='cpu'), module.to_empty())"
            )
