# SPDX-License-Identifier: Apache-2.0
"""Part of a model that is trained locally, and its global state, which the daemons keep.

A synchronization hands over how far the local parameters have gone from the global ones, which is
the gradient of an outer step of SGD; what comes back is the new global state.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from braid import Optimizer, UpdateFlag
from braid.torch.group.process_group import BraidProcessGroup
from braid.torch.group.training_group import broadcast_from_first
from braid.torch.weights.rounds import Rounds
from braid.torch.weights.weight import (
    FIRST_MOMENT,
    WEIGHTS,
    Settings,
    Weight,
    WeightSpec,
    write_to_parameter,
)
from braid.torch.weights.weight_set import WeightSet


class Outer(NamedTuple):
    """The outer step: torch.optim.SGD on the mean distance."""

    lr: float
    momentum: float
    nesterov: bool
    codec: str

    @property
    def settings(self) -> Settings:
        flags = int(UpdateFlag.NESTEROV) if self.nesterov and self.momentum else 0
        return Settings(int(Optimizer.SGD), self.lr, momentum=self.momentum, flags=flags)


class Fragment:
    """Parameters that are synchronized together. `original` is their global state, in CPU memory."""

    def __init__(
        self,
        group: BraidProcessGroup,
        names: Mapping[int, str],
        parameters: Sequence[torch.Tensor],
        outer: Outer,
    ) -> None:
        """`names` by the parameters' ids, the same on all ranks."""
        self._group = group
        self._outer = outer
        self._parameters = list(parameters)
        self.original: dict[int, torch.Tensor] = {}
        self._rounds: Rounds | None = None
        self._has_arrived = False  # The results of the round are in `original`.
        by_dtype = itertools.groupby(
            sorted(self._parameters, key=lambda p: str(p.dtype)), key=lambda p: p.dtype
        )
        group.engine.tickets.take(self, len(self._parameters))
        self._sets = []
        for dtype, of_dtype in by_dtype:
            prefix = group.next_prefix("fragment")
            codec = outer.codec if dtype == torch.float32 else ""
            specs = [WeightSpec(f"{prefix}/{names[id(p)]}", p, codec) for p in of_dtype]
            slots = 2 if outer.momentum else 1
            self._sets.append(WeightSet(group.engine, prefix, specs, slots))

    def load_parameters(self) -> None:
        """The first rank's parameters become the global state, and all ranks' own."""
        broadcast_from_first(self._group, self._parameters)
        for weights in self._sets:
            weights.load(WEIGHTS, lambda w: w.parameter).take_all(write_to_parameter)
        for parameter in self._parameters:
            self.original[id(parameter)] = parameter.detach().cpu().clone()

    def begin(self) -> None:
        """Submits how far the parameters have gone. finish() comes before the next begin()."""
        settings = self._outer.settings
        self._has_arrived = False
        self._rounds = Rounds([
            weights.apply(lambda _: settings, self._distance) for weights in self._sets
        ])  # fmt: skip

    def arrive(self) -> None:
        """Waits for the new global state."""
        if self._rounds is not None and not self._has_arrived:
            self._rounds.take_all(self._keep)
            self._has_arrived = True

    def finish(self, alpha: float) -> None:
        """Makes parameters the new global state, and the share `alpha` of what they were."""
        self.arrive()
        self._rounds = None
        for parameter in self._parameters:
            new = self.original[id(parameter)].to(parameter.device)
            parameter.data.copy_(torch.lerp(new, parameter.data, alpha) if alpha else new)

    @property
    def is_under_way(self) -> bool:
        return self._rounds is not None

    def state(self) -> dict[int, dict[str, Any]]:
        """By the parameters' ids. A collective, after arrive()."""
        states: dict[int, dict[str, Any]] = {}
        for weights in self._sets:
            exact = weights.fetch_exactly(WEIGHTS)
            moments = weights.fetch_exactly(FIRST_MOMENT) if weights.slots > 1 else {}
            for parameter, values in exact.items():
                states[id(parameter)] = {
                    "global": values,
                    "momentum_buffer": moments.get(parameter),
                    "count": weights.weight_of(parameter).count,
                }
        return states

    def load_state(self, states: Mapping[int, Mapping[str, Any]], *, is_under_way: bool) -> None:
        """A collective. `is_under_way`: the global state had come, and was not in use yet."""
        for weights in self._sets:
            for slot, name in ((WEIGHTS, "global"), (FIRST_MOMENT, "momentum_buffer")):
                if slot < weights.slots:
                    weights.load_exactly(slot, lambda w, n=name: states[id(w.parameter)][n])
            for weight in weights:
                weight.count = int(states[id(weight.parameter)]["count"])
        for parameter in self._parameters:
            values = states[id(parameter)]["global"].cpu().to(parameter.dtype)
            self.original[id(parameter)] = values.view(parameter.shape).clone()
        self._rounds = Rounds([]) if is_under_way else None
        self._has_arrived = is_under_way

    def _distance(self, parameter: torch.Tensor) -> torch.Tensor:
        return self.original[id(parameter)] - parameter.detach().cpu()

    def _keep(self, weight: Weight, result: torch.Tensor) -> None:
        self.original[id(weight.parameter)].copy_(result.view(weight.parameter.shape))
