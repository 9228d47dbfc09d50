# SPDX-License-Identifier: Apache-2.0
"""One parameter whose weights the daemons keep: what its next operation does, and with which input."""

from __future__ import annotations

from ctypes import memmove
from typing import NamedTuple

import torch

from braid import StateBits, StateSlot, UpdateAction
from braid.repeated import RepeatedUpdate
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


class Weight:
    """One parameter: where its input lies in the arena, its operation, its updates so far."""

    __slots__ = (
        "count", "first_half", "operation", "parameter", "settings", "view",
    )  # fmt: skip

    def __init__(self, spec: WeightSpec, place: Place, operation: RepeatedUpdate) -> None:
        self.parameter = spec.parameter
        self.operation = operation
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

    def give(self, values: torch.Tensor | None) -> None:
        """Puts an operation's input in its place; None: zeros."""
        self.first_half = None
        if values is None:
            self.view.zero_()
        elif is_plain(values) and values.dtype == self.view.dtype:
            memmove(self.view.data_ptr(), values.data_ptr(), self.view.nbytes)
        else:
            # From CUDA this waits for the copy, and so for what makes the values.
            self.view.view(values.shape).copy_(values.detach())

    def give_first_half(self, values: torch.Tensor | None) -> None:
        self.give(values)
        self.first_half = self.view

    def give_second_half(self, values: torch.Tensor | None) -> None:
        """Makes the input the mean of both halves, in one pass; a half that is not there is zeros."""
        first, self.first_half = self.first_half, None
        if first is None:
            self.give(values)
            self.view.mul_(0.5)
        elif values is None:
            torch.mul(first, 0.5, out=self.view)
        else:
            here = values.detach().to(self.view.device, self.view.dtype)
            torch.lerp(first.view(here.shape), here, 0.5, out=self.view.view(here.shape))

    def give_only_half(self) -> None:
        """Makes the input the first half alone; one that is not there is zeros."""
        first = self.first_half
        if first is None:
            self.give(None)
        elif first is not self.view:
            self.view.copy_(first)
        self.first_half = None


def is_plain(values: torch.Tensor) -> bool:
    """Whether they lie one after the other in the CPU's memory."""
    return values.is_contiguous() and not values.is_cuda


def write_to_parameter(weight: Weight, result: torch.Tensor) -> None:
    """What rounds give is the parameter's new value. Autograd does not see it."""
    data = weight.parameter.data
    data.copy_(result.view(data.shape))
