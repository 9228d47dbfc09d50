# SPDX-License-Identifier: Apache-2.0
"""Buckets of DDP whose tensors are in flight, and how results come back into them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import memmove
from typing import Any

import torch

from braid import BraidError
from braid.torch.ddp.planned_tensors import Part, Piece
from braid.torch.operations.device_copies import SideStreams, devices_of
from braid.torch.operations.engine import Engine
from braid.torch.operations.failures import as_distributed
from braid.torch.operations.flight_record import Entry


class Bucket:
    """A bucket of DDP in flight: its tickets, each with its part of the buffer."""

    __slots__ = (
        "buffer",
        "entry",
        "error",
        "finish",
        "future",
        "promise",
        "second_tickets",
        "tickets",
    )

    def __init__(
        self, finish: Callable[[Bucket], None] | None, buffer: torch.Tensor | None
    ) -> None:
        """`finish` sees it to its end, in the completion thread."""
        self.finish = finish
        self.buffer = buffer
        self.tickets: list[tuple[int, Part]] = []
        self.second_tickets: list[tuple[int, Part]] = []
        self.error: Exception | None = None
        self.entry: Entry | None = None
        self.promise = None
        if buffer is not None:
            self.promise = torch.futures.Future(devices=devices_of(buffer) or None)

    def complete(self) -> None:
        self.finish(self)

    def let_go(self) -> None:
        """The completion thread keeps its last bucket, which shall not keep a model."""
        self.finish = self.buffer = self.promise = self.future = None
        self.tickets = self.second_tickets = []


class Results:
    """Results of one engine's planned tensors, for the completion thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._job = engine.job
        self._side_streams = SideStreams()

    def take_all(self, bucket: Bucket, ticket: int, part: Part) -> None:
        """Waits for a tensor, copies its result into the bucket and gives it back."""
        if _is_plain(bucket, part):
            self._take_into(bucket, ticket, part.pieces[0])
        else:
            self.take(bucket, ticket, self._copy, bucket.buffer, part)

    def take(self, bucket: Bucket, ticket: int, use: Callable[..., None], *arguments: Any) -> None:
        """Waits for an operation, lets `use` have its result, and gives it back.

        The bucket keeps the first error, and no result is used after one.
        """
        try:
            self._engine.wait(ticket)
            if bucket.buffer is not None and bucket.error is None:
                use(ticket, *arguments)
        except Exception as cause:
            bucket.error = bucket.error or distributed_error_of(cause)
        self._release(bucket, ticket)

    def _take_into(self, bucket: Bucket, ticket: int, piece: Piece) -> None:
        """The same with a copy of the whole result, in one call of libbraid."""
        try:
            self._engine.take(ticket, bucket.buffer.data_ptr() + piece.in_bucket, piece.nbytes)
        except Exception as cause:
            bucket.error = distributed_error_of(cause)
            self._release(bucket, ticket)

    def _release(self, bucket: Bucket, ticket: int) -> None:
        try:
            self._job.release(ticket)
        except BraidError as cause:
            bucket.error = bucket.error or distributed_error_of(cause)

    def _copy(self, ticket: int, buffer: torch.Tensor, part: Part) -> None:
        if buffer.is_cuda:
            result = self.tensor(ticket, buffer.dtype)
            for values, place in pairs_of(buffer, part, result):
                self._side_streams.copy(values, place)
            return
        address, _ = self._job.result_address(ticket)
        for piece in part.pieces:
            copy_piece(address + piece.in_tensor, buffer.data_ptr() + piece.in_bucket, piece)

    def tensor(self, ticket: int, dtype: torch.dtype) -> torch.Tensor:
        """In the daemon's memory: to be read, until the ticket is released."""
        address, nbytes = self._job.result_address(ticket)
        raw = (ctypes.c_ubyte * nbytes).from_address(address)
        return torch.frombuffer(raw, dtype=dtype)


def _is_plain(bucket: Bucket, part: Part) -> bool:
    """Whether the result is wanted, and all of it in one place of the CPU's memory."""
    if bucket.buffer is None or bucket.error is not None or bucket.buffer.is_cuda:
        return False
    return len(part.pieces) == 1


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


def distributed_error_of(cause: Exception) -> Exception:
    return as_distributed(cause) if isinstance(cause, BraidError) else cause
