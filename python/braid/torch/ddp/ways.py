# SPDX-License-Identifier: Apache-2.0
"""The two ways of gradients between DDP's buckets and libbraid: through the input arena, or from a GPU.

A way is one gradient set's. The thread that runs the backward pass submits, the completion thread takes
results. `factor` is what gradients are multiplied with before they are added; None: nothing.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import attrgetter
from typing import Any

import torch

from braid.repeated import RepeatedDeviceOperation
from braid.torch.ddp.buckets import Bucket, copy_piece, low_rank_of, pairs_of
from braid.torch.ddp.planned_tensors import Member, Part, PlannedTensor
from braid.torch.operations import devices
from braid.torch.operations.device_blocks import packed
from braid.torch.operations.devices import COPIES, SideStreams, StreamMarks
from braid.torch.operations.engine import Engine
from braid.torch.planned.tensors import Form, lay_out


class ArenaWay:
    """Through the arena. CUDA tensors are waited for: libbraid cannot take them from the GPU here."""

    def __init__(self, engine: Engine, owner: object) -> None:
        """The arena's memory goes when `owner` does."""
        self._engine = engine
        self._owner = weakref.ref(owner)

    def tensors_of(
        self, members: Sequence[Member], handles: Sequence[int], reduction: int
    ) -> list[PlannedTensor]:
        operations = self._operations([member.form for member in members], handles, reduction)
        return [
            PlannedTensor(member, view, operation)
            for member, (view, operation) in zip(members, operations)
        ]

    def operations_of(
        self, forms: Sequence[Form], handles: Sequence[int]
    ) -> list[tuple[torch.Tensor, Any]]:
        """For inputs that are written in place: vectors, each with what submits it for a step."""
        return self._operations(forms, handles, 0)

    def begin(self) -> None:
        """Before a step, when nothing of the last one is in flight."""

    def submit(self, bucket: Bucket, part: Part, step: int, factor: float | None) -> int:
        tensor, buffer = part.tensor, bucket.buffer
        if tensor.low_rank is not None:
            tensor.low_rank.project(low_rank_of(buffer, part), tensor.view)
        elif factor is None and not devices.cuda.holds(buffer):
            address, place = buffer.data_ptr(), tensor.view.data_ptr()
            for piece in part.pieces:
                copy_piece(address + piece.in_bucket, place + piece.in_tensor, piece)
        else:
            for values, place in pairs_of(buffer, part, tensor.view):
                if devices.cuda.holds(buffer):
                    place.copy_(values if factor is None else values * factor)
                else:
                    torch.mul(values, factor, out=place)
        return tensor.operation.submit(step)

    def submit_nothing(self, tensor: PlannedTensor, step: int) -> int:
        """Values that nobody can take for gradients."""
        _spoil(tensor.view)
        return tensor.operation.submit(step)

    def beside(self) -> AbstractContextManager[Any]:
        """In the completion thread: what it starts on a GPU comes beside the backward pass."""
        return nullcontext()

    def take(self, bucket: Bucket, ticket: int, part: Part) -> None:
        """Waits for a tensor, copies its result into the bucket and gives it back."""
        buffer, pieces = bucket.buffer, part.pieces
        if buffer is None or bucket.error is not None:
            bucket.take(ticket, part.tensor.dtype, None)
        elif len(pieces) == 1 and not devices.cuda.holds(buffer):
            bucket.take_into(ticket, buffer.data_ptr() + pieces[0].in_bucket, pieces[0].nbytes)
        else:
            bucket.take(ticket, part.tensor.dtype, _copy, buffer, part)

    def take_matrix(
        self, bucket: Bucket, ticket: int, view: torch.Tensor, use: Callable[..., None], *arguments: Any
    ) -> None:
        """Waits for what was submitted from `view`, and has `use` take the sum."""
        bucket.take(ticket, view.dtype, use, *arguments)

    def _operations(
        self, forms: Sequence[Form], handles: Iterable[int], reduction: int
    ) -> list[tuple[torch.Tensor, Any]]:
        places = lay_out(forms, lambda nbytes: self._engine.lent.take(self._owner(), nbytes))
        repeated = self._engine.job.repeated
        return [(p.view, repeated(h, p.memory, reduction)) for p, h in zip(places, handles)]


class DeviceWay:
    """From a GPU: copies there and back are queued, and the backward pass goes on.

    Results come into the memory from which gradients were sent: the bucket, or a room of its own for a
    tensor whose gradients lie apart.
    """

    def __init__(self, engine: Engine, device: torch.device) -> None:
        self._engine = engine
        self._device = device
        self._streams = SideStreams(COPIES)
        # Rooms of this step, by ticket. The stream that trains uses their memory again, so they go when
        # it has waited for what fills them.
        self._rooms: dict[int, torch.Tensor] = {}

    def tensors_of(
        self, members: Sequence[Member], handles: Sequence[int], reduction: int
    ) -> list[PlannedTensor]:
        return [
            PlannedTensor(
                member,
                self._vector(member.form) if member.shape is not None else None,
                self._engine.job.repeated_device(handle, reduction),
            )
            for member, handle in zip(members, handles)
        ]

    def operations_of(
        self, forms: Sequence[Form], handles: Sequence[int]
    ) -> list[tuple[torch.Tensor, Any]]:
        """As in ArenaWay; on a GPU."""
        views = [self._vector(form) for form in forms]
        job = self._engine.job
        return [
            (view, _InPlace(job.repeated_device(handle), view, self._device))
            for view, handle in zip(views, handles)
        ]

    def begin(self) -> None:
        """Before a step, when nothing of the last one is in flight."""
        if self._rooms:
            with self.beside():
                marks = StreamMarks([self._device])
            marks.let_current_streams_wait()
            self._rooms.clear()

    def submit(self, bucket: Bucket, part: Part, step: int, factor: float | None) -> int:
        tensor, room = part.tensor, None
        if tensor.low_rank is not None:
            memory = tensor.view
            tensor.low_rank.project(low_rank_of(bucket.buffer, part), memory)
        else:
            values = _pieces(bucket.buffer, part)
            if factor is not None:
                torch._foreach_mul_(values, factor)
            memory = values[0]
            if len(values) > 1:
                memory = room = packed(values)
        ticket = self._submit(tensor, step, memory, memory.data_ptr())
        if room is not None:
            self._rooms[ticket] = room
        return ticket

    def submit_nothing(self, tensor: PlannedTensor, step: int) -> int:
        """As in ArenaWay."""
        room = devices.cuda.vector(tensor.travels, tensor.dtype, self._device)
        ticket = self._submit(tensor, step, _spoil(room), 0)
        self._rooms[ticket] = room
        return ticket

    def beside(self) -> AbstractContextManager[Any]:
        """As in ArenaWay."""
        return self._streams.on(self._device)

    def take(self, bucket: Bucket, ticket: int, part: Part) -> None:
        """As in ArenaWay. What comes later on the stream of beside() finds the result."""
        buffer = bucket.buffer

        def unpack() -> None:
            room = self._rooms.get(ticket)
            if room is not None:
                for place, values in pairs_of(buffer, part, room.view(buffer.dtype)):
                    place.copy_(values)

        with self.beside():
            bucket.take_on_device(ticket, self._device, None if buffer is None else unpack)

    def take_matrix(
        self, bucket: Bucket, ticket: int, view: torch.Tensor, use: Callable[..., None], *arguments: Any
    ) -> None:
        """As in ArenaWay."""
        with self.beside():
            bucket.take_on_device(ticket, self._device, lambda: use(view, *arguments))

    def _submit(
        self, tensor: PlannedTensor, step: int, memory: torch.Tensor, result: int
    ) -> int:
        stream = devices.cuda.current_stream(self._device)
        return tensor.operation.submit(step, memory.data_ptr(), result, stream)

    def _vector(self, form: Form) -> torch.Tensor:
        return devices.cuda.vector(form.count, form.dtype, self._device)


class _InPlace:
    """An operation whose input, and result, is one vector on a GPU."""

    def __init__(
        self, operation: RepeatedDeviceOperation, view: torch.Tensor, device: torch.device
    ) -> None:
        self._operation = operation
        self._view = view
        self._device = device

    def submit(self, step: int) -> int:
        address = self._view.data_ptr()
        stream = devices.cuda.current_stream(self._device)
        return self._operation.submit(step, address, address, stream)


def way_of(engine: Engine, owner: object, device: torch.device | None) -> ArenaWay | DeviceWay:
    """For gradients on this GPU; None: in the CPU's memory."""
    if device is not None and engine.on_devices.serves(device):
        return DeviceWay(engine, device)
    return ArenaWay(engine, owner)


def _copy(result: torch.Tensor, buffer: torch.Tensor, part: Part) -> None:
    if devices.cuda.holds(buffer):
        for place, values in pairs_of(buffer, part, result):
            place.copy_(values)
        devices.cuda.hold(devices.cuda.devices_of(buffer))
        return
    for piece in part.pieces:
        to = buffer.data_ptr() + piece.in_bucket
        copy_piece(result.data_ptr() + piece.in_tensor, to, piece)


def _pieces(buffer: torch.Tensor, part: Part) -> list[torch.Tensor]:
    """In the order in which they lie in the tensor."""
    itemsize = buffer.dtype.itemsize
    whole = buffer.detach().view(-1)
    pieces = sorted(part.pieces, key=attrgetter("in_tensor"))
    return [whole[p.in_bucket // itemsize :][: p.nbytes // itemsize] for p in pieces]


def _spoil(values: torch.Tensor) -> torch.Tensor:
    return values.fill_(math.nan if values.dtype.is_floating_point else 0)
