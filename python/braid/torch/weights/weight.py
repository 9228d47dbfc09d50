# SPDX-License-Identifier: Apache-2.0
"""One parameter whose weights the daemons keep: what its next operation does, and with which input."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import memmove
from typing import NamedTuple

import torch

from braid import StateBits, StateSlot, UpdateAction
from braid.repeated import RepeatedDeviceOperation, RepeatedUpdate
from braid.torch.operations import devices
from braid.torch.planned.tensors import Form, Place

WEIGHTS = int(StateSlot.WEIGHTS)
FIRST_MOMENT = int(StateSlot.FIRST_MOMENT)
SECOND_MOMENT = int(StateSlot.SECOND_MOMENT)
ROUNDED = int(StateBits.ROUNDED)
HIGH_BITS = int(StateBits.HIGH)
LOW_BITS = int(StateBits.LOW)

APPLY = int(UpdateAction.APPLY)
PUSH = int(UpdateAction.PUSH)
LOAD = int(UpdateAction.LOAD)
FETCH = int(UpdateAction.FETCH)
ESTIMATE = int(UpdateAction.ESTIMATE)


class WeightSpec(NamedTuple):
    """A parameter, its name on all ranks, and how its gradient travels between nodes."""

    name: str
    parameter: torch.Tensor
    codec: str = ""

    @property
    def form(self) -> Form:
        return Form(self.name, self.parameter.dtype, self.parameter.numel(), self.codec)


class Settings(NamedTuple):
    """What an update does, as braid_update has it. The same on all ranks."""

    optimizer: int
    learning_rate: float
    momentum: float = 0.0
    dampening: float = 0.0
    second_momentum: float = 0.0
    epsilon: float = 0.0
    weight_decay: float = 0.0
    flags: int = 0


NO_SETTINGS = Settings(optimizer=0, learning_rate=0.0)


class Submitted(NamedTuple):
    """An operation of a weight. From a GPU it holds the memory there until its result is taken."""

    ticket: int
    weight: Weight
    given: torch.Tensor | None = None  # None: from the arena
    result: torch.Tensor | None = None
    stream: int = 0  # That was current.


class Weight:
    """One parameter: where its input lies in the arena, its operation, its updates so far.

    Gradients of a parameter on a GPU go from there: they are copied on the GPU, since the script may
    change them as soon as they are submitted, and what travels is the copy. The result comes into its
    memory, since the script uses the parameter meanwhile.
    """

    __slots__ = (
        "count", "device", "first_half", "from_device", "given", "operation", "parameter",
        "serves", "settings", "view",
    )  # fmt: skip

    def __init__(
        self, spec: WeightSpec, place: Place, operation: RepeatedUpdate,
        from_device: RepeatedDeviceOperation, serves: Callable[[torch.device], bool],
    ) -> None:  # fmt: skip
        """`from_device` has the update of `operation`; `serves` says of which GPU it may be used."""
        self.parameter = spec.parameter
        self.operation = operation
        self.from_device = from_device
        self.serves = serves
        self.device = devices.cuda.device_of(spec.parameter)
        # The next operation's input on a GPU.
        self.given: torch.Tensor | None = None
        self.move(place)
        self.count = 0
        # The input of the last operation, if it was the gradient of a half batch, whose mean with that
        # of another half is to be the next input.
        self.first_half: torch.Tensor | None = None
        self.settings: Settings | None = None

    def move(self, place: Place) -> None:
        """The inputs of the operations from here on lie there."""
        self.view = place.view
        self.operation.move(place.memory)

    def ask(
        self, action: int, settings: Settings, slot: int = WEIGHTS, bits: int = ROUNDED, count: int = 0
    ) -> None:
        """What the next operation does. `count` is that of the updates, its own included."""
        update = self.operation.update
        if settings != self.settings:
            self.settings = settings
            for field, value in settings._asdict().items():
                setattr(update, field, value)
        update.action, update.slot, update.bits, update.count = action, slot, bits, count

    def ask_for_update(self, settings: Settings, *, pull: bool = True) -> None:
        """The average of the inputs updates the weight. Without `pull` no rank gets it back."""
        self.count += 1
        self.ask(APPLY if pull else PUSH, settings, count=self.count)

    def submit(self, step: int) -> Submitted:
        """What was given and asked for."""
        given, self.given = self.given, None
        if given is None:
            return Submitted(self.operation.submit(step), self)
        result = None
        if self.operation.update.action != PUSH:
            # The first half of two is used once more.
            is_free = given is not self.first_half
            result = given if is_free else self._vector()
        stream = devices.cuda.current_stream(self.device)
        address = 0 if result is None else result.data_ptr()
        ticket = self.from_device.submit(step, given.data_ptr(), address, stream)
        return Submitted(ticket, self, given, result, stream)

    def give(self, values: torch.Tensor | None) -> None:
        """Puts an operation's input in its place in the arena; None: zeros."""
        self.first_half = self.given = None
        if values is None:
            self.view.zero_()
        elif is_plain(values) and values.dtype == self.view.dtype:
            memmove(self.view.data_ptr(), values.data_ptr(), self.view.nbytes)
        else:
            # From CUDA this waits for the copy, and so for what makes the values.
            self.view.view(values.shape).copy_(values.detach())

    def give_gradient(self, values: torch.Tensor | None) -> None:
        """The same, or on the GPU if values are there."""
        like = self.parameter if values is None else values
        self.device = devices.cuda.device_of(like)
        if not (devices.cuda.holds(like) and self.serves(self.device)):
            self.give(values)
            return
        self.first_half = None
        self.given = self._vector()
        if values is None:
            self.given.zero_()
        else:
            self.given.view(values.shape).copy_(values.detach())

    def give_first_half(self, values: torch.Tensor | None) -> None:
        self.give_gradient(values)
        self.first_half = self.view if self.given is None else self.given

    def give_second_half(self, values: torch.Tensor | None) -> None:
        """Makes the input the mean of both halves, in one pass; a half that is not there is zeros."""
        first, self.first_half = self.first_half, None
        if first is None:
            self.give_gradient(values)
            self._input().mul_(0.5)
            return
        if devices.cuda.holds(first):
            self.given = self._vector()
        into = self._input()
        if values is None:
            torch.mul(first, 0.5, out=into)
        else:
            here = values.detach().to(into.device, into.dtype)
            torch.lerp(first.view(here.shape), here, 0.5, out=into.view(here.shape))

    def give_only_half(self) -> None:
        """Makes the input the first half alone; one that is not there is zeros."""
        first, self.first_half = self.first_half, None
        if first is None:
            self.give_gradient(None)
        elif devices.cuda.holds(first):
            self.given = first
        elif first is not self.view:
            self.view.copy_(first)

    def _input(self) -> torch.Tensor:
        return self.view if self.given is None else self.given

    def _vector(self) -> torch.Tensor:
        return devices.cuda.vector(self.view.numel(), self.view.dtype, self.device)


def is_plain(values: torch.Tensor) -> bool:
    """Whether they lie one after the other in the CPU's memory."""
    return values.is_contiguous() and not devices.cuda.holds(values)


def write_to_parameter(weight: Weight, result: torch.Tensor) -> None:
    """What rounds give is the parameter's new value. Autograd does not see it."""
    data = weight.parameter.data
    data.copy_(result.view(data.shape))
