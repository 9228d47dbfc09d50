# SPDX-License-Identifier: Apache-2.0
"""Buckets of DDP whose tensors are in flight, and how results come back into them."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import memmove

import torch

from braid.torch.ddp.planned_tensors import Part, Piece
from braid.torch.operations import devices
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
            self.promise = devices.cuda.future(devices.cuda.devices_of(buffer))

    def complete(self) -> None:
        self.finish(self)

    def let_go(self) -> None:
        """The completion thread keeps its last bucket, which shall not keep a model."""
        self.finish = self.buffer = self.promise = self.future = None
        self.tickets = self.second_tickets = []


def copy_piece(from_address: int, to_address: int, piece: Piece) -> None:
    memmove(to_address, from_address, piece.nbytes)


def pairs_of(
    buffer: torch.Tensor, part: Part, of_tensor: torch.Tensor
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Each piece as vectors: in the bucket, and in memory in which the tensor lies."""
    itemsize = buffer.dtype.itemsize
    of_bucket = buffer.detach().view(-1)
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
