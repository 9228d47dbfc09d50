# SPDX-License-Identifier: Apache-2.0
"""Tensors of one GPU as the single blocks of memory that an operation reads and writes.

Tensors that do not lie one after the other are put into a block of their own by the GPU, behind what
the current stream has, and taken out of such a block likewise. Nobody waits for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

import torch

from braid.torch.operations import devices

Tensors = Sequence[torch.Tensor]


def one_block(tensors: Tensors) -> int | None:
    """Where tensors begin that lie one after the other; 0 if they have no elements. None: they do
    not lie so."""
    begin = end = 0
    for tensor in tensors:
        if not tensor.is_contiguous():
            return None
        if tensor.nbytes:
            address = tensor.data_ptr()
            if end and address != end:
                return None
            begin = begin or address
            end = address + tensor.nbytes
    return begin


def packed(tensors: Tensors) -> torch.Tensor:
    """A copy of all elements, one after the other, as bytes."""
    vectors = [tensor.detach().reshape(-1) for tensor in tensors]
    if any(vector.dtype != vectors[0].dtype for vector in vectors):
        vectors = [vector.view(torch.uint8) for vector in vectors]
    count = sum(vector.numel() for vector in vectors)
    room = devices.cuda.vector(count, vectors[0].dtype, devices.cuda.device_of(tensors[0]))
    return torch.cat(vectors, out=room).view(torch.uint8)


class Block:
    """The block of some tensors. `address` is 0 where they have no elements; `room` is memory of its
    own, if the tensors do not make up a block themselves."""

    def __init__(self, tensors: Tensors, room: torch.Tensor | None, address: int) -> None:
        self.tensors = tuple(tensors)  # Who has given a list may change it.
        self.room = room
        self.address = address

    def unpack(self) -> None:
        """Copies from the room to the tensors, as if written by another process: not seen by
        autograd."""
        if self.room is None:
            return
        sizes = [tensor.nbytes for tensor in self.tensors]
        pieces = [
            _as(piece, tensor) for piece, tensor in zip(self.room.split(sizes), self.tensors)
        ]
        torch._foreach_copy_([tensor.data for tensor in self.tensors], pieces)


def block_of_inputs(tensors: Tensors) -> Block:
    address = one_block(tensors)
    if address is not None:
        return Block(tensors, None, address)
    room = packed(tensors)
    return Block(tensors, room, room.data_ptr())


def block_of_outputs(tensors: Tensors, given: Block) -> Block:
    """For a result. `given` is the operation's input, whose block it takes where tensors are the same."""
    if len(tensors) == len(given.tensors) and all(map(is_, tensors, given.tensors)):
        return given
    address = one_block(tensors)
    if address is not None:
        return Block(tensors, None, address)
    nbytes = sum(tensor.nbytes for tensor in tensors)
    room = devices.cuda.vector(nbytes, torch.uint8, devices.cuda.device_of(tensors[0]))
    return Block(tensors, room, room.data_ptr())


def _as(piece: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Bytes as a contiguous tensor like this one."""
    if piece.storage_offset() % tensor.dtype.itemsize:
        piece = piece.clone()
    return piece.view(tensor.dtype).view(tensor.shape)
