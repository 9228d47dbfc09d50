# SPDX-License-Identifier: Apache-2.0
"""How tensors come into the arena, one after the other, and results out of the daemon's memory to tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import memmove
from typing import Union

import torch

from braid import Job, Memory
from braid.torch.operations import devices
from braid.torch.operations.arena import Arena
from braid.torch.operations.device_copies import check_has_memory, memory_as

Outputs = Sequence[torch.Tensor]
# Where a result goes: a tensor of the CPU that takes all of it, or what copies it from a ticket.
Unpack = Union[torch.Tensor, Callable[[Job, int], None]]


def pack(arena: Arena, tensors: Sequence[torch.Tensor]) -> Memory:
    """Copies contiguous tensors one after the other into arena memory."""
    check_has_memory(tensors)
    memory = arena.take(max(1, sum(tensor.nbytes for tensor in tensors)))
    address = memory.address
    try:
        for tensor in tensors:
            nbytes = tensor.nbytes
            if not devices.cuda.holds(tensor):
                memmove(address, tensor.data_ptr(), nbytes)
            elif nbytes:
                memory_as(address, tensor).copy_(tensor.detach())
            address += nbytes
    except BaseException:
        arena.give_back(memory)
        raise
    return memory


def unpack_whole(outputs: Outputs) -> Unpack:
    """Copies a result that holds `outputs` one after the other."""
    check_has_memory(outputs)
    if len(outputs) == 1 and outputs[0].is_contiguous() and not devices.cuda.holds(outputs[0]):
        return outputs[0]
    return lambda job, ticket: scatter_to(job.result_address(ticket)[0], outputs)


def unpack_by_rank(outputs: Sequence[Outputs]) -> Callable[[Job, int], None]:
    """Copies an all-gather's block of each rank to `outputs[rank]`."""
    for tensors in outputs:
        check_has_memory(tensors)

    def unpack(job: Job, ticket: int) -> None:
        for rank, tensors in enumerate(outputs):
            _scatter_to(job.result_address_of_rank(ticket, rank)[0], tensors)
        devices.cuda.hold(devices.cuda.devices_of(t for tensors in outputs for t in tensors))

    return unpack


def scatter_to(address: int, tensors: Outputs) -> None:
    """Copies memory to tensors, one after the other, as if written by another process.

    Not seen by autograd: it must not be an in-place operation for it, as with gloo. CUDA tensors are
    there on return, whichever stream or thread looks at them then.
    """
    _scatter_to(address, tensors)
    # Also for the memory, which is about to be given back. A tensor that is not contiguous has a
    # kernel behind the copy.
    devices.cuda.hold(devices.cuda.devices_of(tensors))


def _scatter_to(address: int, tensors: Outputs) -> None:
    """The same, but what copies to GPUs may still be on its way."""
    for tensor in tensors:
        nbytes = tensor.nbytes
        if devices.cuda.holds(tensor):
            if nbytes:
                tensor.data.copy_(memory_as(address, tensor))
        elif tensor.is_contiguous():
            memmove(tensor.data_ptr(), address, nbytes)
        else:
            packed = torch.empty_like(tensor, memory_format=torch.contiguous_format)
            memmove(packed.data_ptr(), address, nbytes)
            tensor.data.copy_(packed)
        address += nbytes
