# SPDX-License-Identifier: Apache-2.0
"""Buckets of DDP whose tensors are in flight, and how results come back into them."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import memmove

import torch

from braid.torch.ddp.planned_tensors import Part, Piece
from braid.torch.operations.device_copies import SideStreams, devices_of
from braid.torch.operations.engine import Engine
from braid.torch.planned.flight import Flight


class Bucket(Flight):
    """A bucket of DDP in flight: its tickets, each with its part of the buffer. Without a buffer
    nobody wants the results."""

    __slots__ = ("buffer", "finish", "future", "promise", "second_tickets", "tickets")

    def __init__(
        self, engine: Engine, finish: Callable[[Bucket], None], buffer: torch.Tensor | None
    ) -> None:
        """`finish` sees it to its end, in the completion thread."""
        super().__init__(engine)
        self.finish = finish
        self.buffer = buffer
        self.tickets: list[tuple[int, Part]] = []
        self.second_tickets: list[tuple[int, Part]] = []
        self.promise = None
        if buffer is not None:
            self.promise = torch.futures.Future(devices=devices_of(buffer) or None)

    def complete(self) -> None:
        self.finish(self)

    def take_part(self, ticket: int, part: Part, side_streams: SideStreams) -> None:
        """Waits for a tensor, copies its result into the bucket and gives it back."""
        buffer, pieces = self.buffer, part.pieces
        if buffer is None or self.error is not None:
            self.take(ticket, part.tensor.dtype, None)
        elif len(pieces) == 1 and not buffer.is_cuda:
            self.take_into(ticket, buffer.data_ptr() + pieces[0].in_bucket, pieces[0].nbytes)
        else:
            self.take(ticket, part.tensor.dtype, self._copy, part, side_streams)

    def let_go(self) -> None:
        """The completion thread keeps its last bucket, which shall not keep a model."""
        self.finish = self.buffer = self.promise = self.future = None
        self.tickets = self.second_tickets = []

    def _copy(self, result: torch.Tensor, part: Part, side_streams: SideStreams) -> None:
        if self.buffer.is_cuda:
            for values, place in pairs_of(self.buffer, part, result):
                side_streams.copy(values, place)
            return
        for piece in part.pieces:
            to = self.buffer.data_ptr() + piece.in_bucket
            copy_piece(result.data_ptr() + piece.in_tensor, to, piece)


def copy_piece(from_address: int, to_address: int, piece: Piece) -> None:
    memmove(to_address, from_address, piece.nbytes)


def pairs_of(
    buffer: torch.Tensor, part: Part, memory: torch.Tensor | None = None
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Each piece as vectors: in the bucket, and in the tensor or in other memory that is laid out
    like it."""
    itemsize = buffer.dtype.itemsize
    of_bucket = buffer.detach().view(-1)
    of_tensor = part.tensor.view if memory is None else memory
    return [
        (
            of_bucket[piece.in_bucket // itemsize :][: piece.nbytes // itemsize],
            of_tensor[piece.in_tensor // itemsize :][: piece.nbytes // itemsize],
        )
        for piece in part.pieces
    ]


def low_rank_of(buffer: torch.Tensor, part: Part) -> torch.Tensor:
    """A gradient's elements in a bucket, as a vector: such a tensor has one gradient."""
    first = part.pieces[0].in_bucket // part.tensor.dtype.itemsize
    return buffer.detach().view(-1)[first : first + part.tensor.numel]
