# SPDX-License-Identifier: Apache-2.0
"""A model's gradients as planned tensors of a job, submitted one by one.

The daemon may merge neighbours into one reduction, by a plan that it makes from what it sees: when
each gradient is ready, step after step. For that, every gradient is a tensor of its own with one
number per step, all of them are submitted in every step, and none is waited for before the last one
is there. Inputs lie one after the other in backward order, so that merging them copies nothing.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable, Sequence
from ctypes import memmove
from typing import Any, NamedTuple

import torch

from braid import BraidError, DType, Memory, Reduction, TensorSpec
from braid.torch.callbacks import Origin
from braid.torch.carriage import dtype_of
from braid.torch.claims import has_claims, is_claimed
from braid.torch.device_copies import SideStreams, devices_of, wait_for_streams
from braid.torch.engine import Engine
from braid.torch.explaining import explain_once
from braid.torch.failures import as_distributed
from braid.torch.flight_record import Entry
from braid.torch.futures import Failure, Source, future_of
from braid.torch.power_sgd import LowRank, SecondSums, Shape

AVERAGE = int(Reduction.AVERAGE)
SUM = int(Reduction.SUM)

# libbraid keeps at most 4096 tickets per job, and the group's collectives need some of them.
GRADIENTS_MAX = 3000

# Follows a gradient's name in that of its second all-reduce.
SECOND = "#Q"

# While gradients are still being submitted nobody waits for a result, and handling each one at once
# would take the interpreter from the thread that trains, again and again. So small ones are handled
# in batches: a pause, then as many as have come. Large ones are copied beside the backward pass.
_PAUSE_SECONDS = 0.002
_BATCH_SECONDS = 0.0005
_LARGE_BYTES = 1 << 16


class Member(NamedTuple):
    """One gradient to be: the parameter that it belongs to, its name on all ranks, its codec.

    With a shape it travels as two matrices, both of float32 (see power_sgd.py).
    """

    name: str
    parameter: torch.Tensor
    dtype: torch.dtype
    codec: str = ""
    shape: Shape | None = None

    @property
    def travels(self) -> int:
        """Elements in the arena: those of the gradient, or of its P."""
        return self.shape.rows * self.shape.rank if self.shape else self.parameter.numel()


class Gradient:
    """One gradient: its size in a bucket, where it or its P lies in the arena, its operation."""

    __slots__ = ("address", "dtype", "low_rank", "nbytes", "numel", "operation", "step", "view")

    def __init__(self, member: Member, offset: int, block: Memory, bytes_of: torch.Tensor) -> None:
        self.dtype = member.dtype
        self.numel = member.parameter.numel()
        self.nbytes = self.numel * member.dtype.itemsize
        self.address = block.address + offset
        end = offset + member.travels * member.dtype.itemsize
        self.view = bytes_of[offset:end].view(member.dtype)
        self.low_rank: LowRank | None = None
        self.step = -1


class GradientSet:
    """The gradients of one model. Of the thread that runs the backward pass.

    Arithmetic: BRAID_AVERAGE divides after the sum and lets the copy into the arena be a plain one.
    With 16-bit floats of little range among them, gradients are scaled before, as DDP does it.
    """

    def __init__(self, engine: Engine, name: str, members: Sequence[Member]) -> None:
        """`name` is the same on all ranks, and of no other set of this engine."""
        self._engine = engine
        self._name = f"{engine.job.name} {name}"
        self._job = engine.job
        self._size = engine.job.world_size
        self._parameters = [member.parameter for member in members]  # Keeps their ids theirs.
        self._averages = all(member.dtype != torch.float16 for member in members)
        self._reduction = AVERAGE if self._averages else SUM
        self._factor = 1.0 / self._size
        self._step = -1
        self._submitted = 0
        self._averaged = 0  # Buckets, of which all ranks have the same in the same order.
        # Buckets handed to the completion thread, and those that it has ended.
        self._begun = 0
        self._ended = 0
        self._one_ended = threading.Condition()
        self._all_submitted = threading.Event()
        self._batch_end = 0.0
        self._side_streams = SideStreams()
        handles = self._job.register(
            [
                TensorSpec(member.name, _braid_dtype(member), member.travels, place,
                           planned=True, codec=member.codec)
                for place, member in enumerate(members)
            ]
        )  # fmt: skip
        self._gradients = self._lay_out(members, handles)
        self._second = self._prepare_low_ranks(members)
        # Gradients whose first all-reduce has ended in this step, and buckets that wait for Qs.
        self._firsts_ended = 0
        self._halfway: list[_Bucket] = []
        self._by_id = {id(p): g for p, g in zip(self._parameters, self._gradients)}
        engine.gradients.start()
        explain_once(self._job)

    def _lay_out(self, members: Sequence[Member], handles: Sequence[int]) -> list[Gradient]:
        offsets, end = [], 0
        for member in members:
            itemsize = member.dtype.itemsize
            offset = -(-end // itemsize) * itemsize
            offsets.append(offset)
            end = offset + member.travels * itemsize
        # Until the job is closed.
        self._block = block = self._job.allocate(max(1, end))
        for device in devices_of(self._parameters)[:1]:
            self._engine.arena.pinned.add(block, device)
        raw = (ctypes.c_ubyte * block.nbytes).from_address(block.address)
        bytes_of = torch.frombuffer(raw, dtype=torch.uint8)
        gradients = []
        for member, offset, handle in zip(members, offsets, handles):
            gradient = Gradient(member, offset, block, bytes_of)
            place = Memory(gradient.address, gradient.view.nbytes)
            gradient.operation = self._job.repeated(handle, place, self._reduction)
            gradients.append(gradient)
        return gradients

    def _prepare_low_ranks(self, members: Sequence[Member]) -> SecondSums | None:
        names = []
        for place, (member, gradient) in enumerate(zip(members, self._gradients)):
            if member.shape is not None:
                gradient.low_rank = LowRank(member.shape, member.parameter.device, seed=place)
                names.append(member.name + SECOND)
        low_ranks = [gradient.low_rank for gradient in self._gradients if gradient.low_rank]
        return SecondSums(self._engine, names, low_ranks) if names else None

    def claimed(self) -> tuple[bool, bool]:
        """Whether optimizers of braid reduce any of these gradients now, and all."""
        claims = [is_claimed(parameter) for parameter in self._parameters] if has_claims() else [False]
        return any(claims), all(claims)

    def begin(self, step: int, active_ranks: int | None = None) -> None:
        """Before a step's first bucket.

        With `active_ranks` gradients are divided by that, instead of by the number of all ranks.
        """
        if self._submitted not in (0, len(self._gradients)):
            # The last backward pass was abandoned in the middle, and nobody reads its results.
            self.fill_up()
        self._wait_for_all()
        self._step = step
        self._submitted = 0
        self._firsts_ended = 0
        self._all_submitted.clear()
        reduction = AVERAGE if self._averages and active_ranks is None else SUM
        self._factor = 1.0 / (active_ranks or self._size)
        if reduction != self._reduction:
            self._reduction = reduction
            for gradient in self._gradients:
                gradient.operation.set_reduction(reduction)

    def average(
        self, parameters: Sequence[torch.Tensor], buffer: torch.Tensor
    ) -> torch.futures.Future[torch.Tensor] | None:
        """Averages a bucket in place. None: it does not consist of gradients of this step."""
        by_id = self._by_id
        gradients = [by_id.get(id(parameter)) for parameter in parameters]
        if not self._fits(gradients, buffer):
            return None
        bucket = _Bucket(self, buffer)
        tensors = [buffer]
        bucket.entry = self._engine.record.add("all_reduce", tensors, tensors)
        origin = Origin(self._name, self._averaged)
        self._averaged += 1
        source = Source(origin, self._engine.callbacks, devices_of(buffer))
        bucket.future = future_of(bucket.promise, source)
        try:
            self._submit(gradients, buffer, bucket.tickets)
        except BraidError as error:
            bucket.error = as_distributed(error)
            raise bucket.error from error
        except Exception as error:
            bucket.error = error
            raise
        finally:
            # Also after an error: tickets that were given must be waited for.
            self._hand_over(bucket)
        return bucket.future

    def fill_up(self) -> None:
        """Submits what is missing in this step, so that what is there can end.

        With values that nobody can take for gradients, should another rank not have abandoned the
        step as this one did.
        """
        missing = [gradient for gradient in self._gradients if gradient.step != self._step]
        bucket = _Bucket(self, None)
        try:
            for gradient in missing:
                gradient.view.fill_(math.nan if gradient.dtype.is_floating_point else 0)
                gradient.step = self._step
                bucket.tickets.append((gradient.operation.submit(self._step), 0, gradient))
                self._submitted += 1
        except BraidError as error:
            raise as_distributed(error) from error
        finally:
            self._hand_over(bucket)

    def _fits(self, gradients: Sequence[Gradient | None], buffer: torch.Tensor) -> bool:
        if None in gradients or buffer.is_sparse or not buffer.is_contiguous():
            return False
        step, dtype, nbytes = self._step, buffer.dtype, 0
        for gradient in gradients:
            if gradient.step == step or gradient.dtype != dtype:
                return False
            nbytes += gradient.nbytes
        return nbytes == buffer.nbytes

    def _submit(self, gradients: Sequence[Gradient], buffer: torch.Tensor, tickets: list) -> None:
        step, on_gpu = self._step, buffer.is_cuda
        plain = self._reduction == AVERAGE
        if on_gpu:
            self._stage_all(gradients, buffer)
        address, offset = buffer.data_ptr(), 0
        for gradient in gradients:
            nbytes = gradient.nbytes
            if gradient.low_rank is not None:
                gradient.low_rank.project(_part_of(buffer, offset, gradient), gradient.view)
            elif on_gpu:
                pass
            elif plain:
                memmove(gradient.address, address + offset, nbytes)
            else:
                torch.mul(_part_of(buffer, offset, gradient), self._factor, out=gradient.view)
            gradient.step = step
            tickets.append((gradient.operation.submit(step), offset, gradient))
            offset += nbytes
            self._submitted += 1

    def _stage_all(self, gradients: Sequence[Gradient], buffer: torch.Tensor) -> None:
        """Into the arena from a GPU, for which this waits once."""
        offset = 0
        for gradient in gradients:
            if gradient.low_rank is None:
                values = _part_of(buffer, offset, gradient)
                if self._reduction != AVERAGE:
                    values = values * self._factor
                gradient.view.copy_(values, non_blocking=True)
            offset += gradient.nbytes
        wait_for_streams(devices_of(buffer))

    def _hand_over(self, bucket: _Bucket) -> None:
        self._begun += 1
        self._engine.gradients.put(bucket)
        if self._submitted == len(self._gradients):
            self._all_submitted.set()

    def _wait_for_all(self) -> None:
        """Until nothing is in flight: the inputs and the buckets are about to be written again.

        DDP has waited for its buckets already, unless a backward pass was abandoned.
        """
        if self._ended != self._begun:
            with self._one_ended:
                self._one_ended.wait_for(lambda: self._ended == self._begun)

    # In the completion thread.

    def finish(self, bucket: _Bucket) -> None:
        """Sees a bucket's operations to their end, or to where only sums of Qs are missing."""
        if not self._all_submitted.is_set():
            self._pause(bucket)
        for ticket, offset, gradient in bucket.tickets:
            if gradient.low_rank is None:
                self._take(bucket, ticket, self._copy_result, bucket.buffer, offset, gradient)
            else:
                # First, for the other ranks wait for this rank's Q even if what follows fails.
                self._second.write_nothing(gradient.low_rank)
                self._take(bucket, ticket, self._project_back, bucket.buffer, gradient)
                self._submit_second(bucket, offset, gradient)
        self._firsts_ended += len(bucket.tickets)
        if bucket.second_tickets:
            self._halfway.append(bucket)
        else:
            self._end(bucket)
        if self._firsts_ended == len(self._gradients):
            halfway, self._halfway = self._halfway, []
            for bucket in halfway:
                for ticket, offset, gradient in bucket.second_tickets:
                    self._take(bucket, ticket, self._expand, bucket.buffer, offset, gradient)
                self._end(bucket)

    def _take(self, bucket: _Bucket, ticket: int, use: Callable[..., None], *arguments: Any) -> None:
        """Waits for an operation, lets `use` have its result, and gives it back.

        The bucket keeps the first error, and no result is used after one.
        """
        try:
            self._engine.wait(ticket)
            if bucket.buffer is not None and bucket.error is None:
                use(ticket, *arguments)
        except Exception as cause:
            bucket.error = bucket.error or _as_distributed(cause)
        try:
            self._job.release(ticket)
        except BraidError as cause:
            bucket.error = bucket.error or _as_distributed(cause)

    def _end(self, bucket: _Bucket) -> None:
        if bucket.entry is not None:
            bucket.entry.end(bucket.error)
        with self._one_ended:
            self._ended += 1
            self._one_ended.notify_all()
        if bucket.promise is not None:
            error = bucket.error
            bucket.promise.set_result(bucket.buffer if error is None else Failure(error))

    def _pause(self, bucket: _Bucket) -> None:
        large = bucket.buffer is not None and bucket.buffer.nbytes >= _LARGE_BYTES
        if not large and time.monotonic() >= self._batch_end:
            self._all_submitted.wait(_PAUSE_SECONDS)
            self._batch_end = time.monotonic() + _BATCH_SECONDS

    def _copy_result(
        self, ticket: int, buffer: torch.Tensor, offset: int, gradient: Gradient
    ) -> None:
        if not buffer.is_cuda:
            self._job.copy_result(ticket, buffer.data_ptr() + offset, gradient.nbytes)
            return
        result = self._result(ticket, buffer.dtype)
        self._side_streams.copy(_part_of(buffer, offset, gradient), result)

    def _project_back(self, ticket: int, buffer: torch.Tensor, gradient: Gradient) -> None:
        self._second.write(gradient.low_rank, self._result(ticket, gradient.dtype), self._factor)

    def _submit_second(self, bucket: _Bucket, offset: int, gradient: Gradient) -> None:
        try:
            ticket = self._second.submit(gradient.low_rank, self._step)
        except BraidError as cause:
            bucket.error = bucket.error or _as_distributed(cause)
        else:
            bucket.second_tickets.append((ticket, offset, gradient))

    def _expand(self, ticket: int, buffer: torch.Tensor, offset: int, gradient: Gradient) -> None:
        average = _part_of(buffer, offset, gradient)
        gradient.low_rank.expand(self._result(ticket, gradient.dtype), average)

    def _result(self, ticket: int, dtype: torch.dtype) -> torch.Tensor:
        """In the daemon's memory: to be read, until the ticket is released."""
        address, nbytes = self._job.result_address(ticket)
        raw = (ctypes.c_ubyte * nbytes).from_address(address)
        return torch.frombuffer(raw, dtype=dtype)


class _Bucket:
    """A bucket of DDP in flight: its tickets, each with its place in the buffer in bytes."""

    __slots__ = (
        "buffer",
        "entry",
        "error",
        "future",
        "gradients",
        "promise",
        "second_tickets",
        "tickets",
    )

    def __init__(self, gradients: GradientSet, buffer: torch.Tensor | None) -> None:
        self.gradients = gradients
        self.buffer = buffer
        self.tickets: list[tuple[int, int, Gradient]] = []
        self.second_tickets: list[tuple[int, int, Gradient]] = []
        self.error: Exception | None = None
        self.entry: Entry | None = None
        self.promise = None
        if buffer is not None:
            self.promise = torch.futures.Future(devices=devices_of(buffer) or None)

    def complete(self) -> None:
        self.gradients.finish(self)


def _part_of(buffer: torch.Tensor, offset: int, gradient: Gradient) -> torch.Tensor:
    """A gradient's elements in a bucket, as a vector."""
    first = offset // gradient.dtype.itemsize
    return buffer.detach().view(-1)[first : first + gradient.numel]


def _braid_dtype(member: Member) -> DType:
    dtype = dtype_of(member.dtype)
    assert dtype is not None, member
    return dtype


def _as_distributed(cause: Exception) -> Exception:
    return as_distributed(cause) if isinstance(cause, BraidError) else cause
