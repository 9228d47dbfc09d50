# SPDX-License-Identifier: Apache-2.0
"""The parameters of one optimizer, kept by the daemons: who is among them, what is loaded when.

A parameter is registered when a gradient of it is first seen on any rank; until then it rests, as
torch's optimizers pass over parameters without gradients. From then on it is updated in every step
of all ranks, and a rank that has no gradient of it in some step gives zeros.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch.distributed import ReduceOp

from braid.torch.group.process_group import BraidProcessGroup
from braid.torch.group.training_group import broadcast_from_first
from braid.torch.planned.tensors import TENSORS_MAX
from braid.torch.weights.rounds import Rounds, Use
from braid.torch.weights.weight import WEIGHTS, Settings, Weight, WeightSpec, write_to_parameter
from braid.torch.weights.weight_set import WeightSet

_log = logging.getLogger("braid")
_NAME_BYTES_MAX = 1023


class State(NamedTuple):
    """What owners keep for one parameter: updates so far, and values by slot.

    WEIGHTS among the slots are those whose rounded values the parameter has. With `has_weights`
    they are the weights, whatever the parameter is.
    """

    count: int
    slots: Mapping[int, torch.Tensor]
    has_weights: bool = False


class KeptWeights:
    """Weights that the daemons keep. The thread that trains calls each method, alike on all ranks."""

    def __init__(
        self,
        group: BraidProcessGroup,
        names: Mapping[torch.Tensor, str],
        *,
        codec: str = "",
        pull_bf16: bool = False,
    ) -> None:
        """`names` of all parameters, in the model's order, the same on all ranks."""
        self.group = group
        self.sets: list[WeightSet] = []
        self._names = dict(names)
        self._codec = codec
        self._pull_bf16 = pull_bf16
        # What is to be loaded into slots before the next update, by parameter.
        self._pending: dict[int, State] = {}
        self._versions: dict[int, int] = {}
        self._registered: set[int] = set()
        self._take_tickets()

    def add(self, parameter: torch.Tensor, name: str) -> None:
        """One more, which rests until it has a gradient."""
        self._names[parameter] = name
        self._take_tickets()

    def prepare(self, slots: int) -> None:
        """Before an update: registers parameters that have a gradient now, loads what is to be."""
        self._register(self._newly_awake(), slots)
        for weights in self.sets:
            self._reload(weights)

    def wake(self, slots: int) -> list[WeightSet]:
        """The same for parameters that were not registered yet; returns the sets that they make. A
        round of the other sets may be in flight, all of it submitted."""
        known = len(self.sets)
        self._register(self._newly_awake(), slots)
        new = self.sets[known:]
        for weights in new:
            self._reload(weights)
        return new

    def apply(
        self,
        settings: Callable[[torch.Tensor], Settings],
        gradient: Callable[[torch.Tensor], torch.Tensor | None],
        *,
        pull: bool = True,
        ahead: bool = False,
    ) -> Rounds:
        """With `ahead` the round before may be on its way: make_room_ahead() must have been True."""
        return Rounds([each.apply(settings, gradient, pull=pull, ahead=ahead) for each in self.sets])

    def make_room_ahead(self) -> bool:
        """Memory and tickets for a round while another one is on its way. False: there are none."""
        tickets = 2 * sum(len(weights) for weights in self.sets)
        return (
            tickets <= TENSORS_MAX
            and self.group.engine.tickets.take_ahead(self)
            and all(each.make_room_ahead() for each in self.sets)
        )

    def state_of(self, slots: Iterable[int]) -> dict[torch.Tensor, State]:
        """What owners keep, from all of them, in CPU memory; before that what is to be loaded."""
        states = {p: self._pending[id(p)] for p in self._names if id(p) in self._pending}
        slots = list(slots)
        for weights in self.sets:
            self._reload(weights)
            for parameter in (weight.parameter for weight in weights):
                states[parameter] = State(weights.weight_of(parameter).count, {})
            for slot in slots:
                if slot < weights.slots:
                    for parameter, values in weights.fetch_exactly(slot).items():
                        states[parameter].slots[slot] = values
        return states

    def load_state(self, states: Mapping[torch.Tensor, State]) -> None:
        """Called before the next update. Parameters without a state begin anew. Parameters whose
        states have weights are registered then, also those without a gradient."""
        self._pending = {id(p): states.get(p, State(0, {})) for p in self._names}

    def fetch_weights(self, use: Use) -> None:
        """The owners' weights, rounded to the parameters' types."""
        for weights in self.sets:
            weights.fetch(WEIGHTS).take_all(use)

    def keeps_exactly(self, parameter: torch.Tensor) -> bool:
        """Whether a parameter is what its owners keep, and not rounded."""
        narrow = parameter.dtype in (torch.float16, torch.bfloat16)
        return not narrow and not (self._pull_bf16 and parameter.dtype == torch.float32)

    def rounded(self, exact: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
        """What comes back of the owners' exact weights."""
        if self.keeps_exactly(parameter):
            return exact
        narrow = torch.bfloat16 if parameter.dtype == torch.float32 else parameter.dtype
        return exact.to(narrow).to(parameter.dtype)

    def is_changed(self) -> bool:
        """Whether somebody else has changed parameters: all rounds must be over before prepare()."""
        return any(self._is_changed(weights) for weights in self.sets)

    def is_to_be_loaded(self) -> bool:
        """Whether prepare() has something to load for the parameters that are registered."""
        return self.is_changed() or any(
            id(weight.parameter) in self._pending for weights in self.sets for weight in weights
        )

    def changed_names(self) -> list[str]:
        """Those of the known() parameters that somebody else has changed."""
        return [self.name_of(p) for p in self.known() if self._is_parameter_changed(p)]

    def known(self) -> list[torch.Tensor]:
        """The parameters whose weights owners have, or are to get from load_state()."""
        return [
            parameter
            for parameter in self._names
            if id(parameter) in self._registered
            or ((state := self._pending.get(id(parameter))) is not None and state.has_weights)
        ]

    def name_of(self, parameter: torch.Tensor) -> str:
        return self._names[parameter]

    def renew(self, codec: str) -> None:
        """Registers all parameters again, to travel by another codec, with what owners keep."""
        slots = max((weights.slots for weights in self.sets), default=1)
        states = self.state_of(range(slots))
        parameters = [weight.parameter for weights in self.sets for weight in weights]
        for weights in self.sets:
            weights.end()
        self._codec, self.sets = codec, []
        self._pending.update(
            (id(p), State(states[p].count, states[p].slots, has_weights=True)) for p in parameters
        )
        self._register(parameters, slots)
        self.keep_versions(parameters)
        for weights in self.sets:
            self._reload(weights)

    def keep_versions(self, parameters: Iterable[torch.Tensor]) -> None:
        """Parameters are as they are to be: what is to be loaded does not depend on them."""
        self._versions.update((id(p), p._version) for p in parameters)

    def reload(self) -> None:
        """Parameters were changed in a way that torch does not count: load all of them."""
        self._versions.clear()

    def _take_tickets(self) -> None:
        count = sum(parameter.requires_grad for parameter in self._names)
        self.group.engine.tickets.take(self, count)

    def _newly_awake(self) -> list[torch.Tensor]:
        """Those at rest of which some rank has a gradient now, or whose weights are to be loaded."""
        resting = [
            parameter
            for parameter in self._names
            if id(parameter) not in self._registered and parameter.requires_grad
        ]
        if not resting:
            return []
        seen = torch.tensor(
            [p.grad is not None or self._has_loaded_weights(p) for p in resting], dtype=torch.uint8
        )
        self.group.allreduce([seen], ReduceOp.MAX).wait()
        return [parameter for parameter, is_awake in zip(resting, seen.tolist()) if is_awake]

    def _register(self, parameters: Sequence[torch.Tensor], slots: int) -> None:
        self._take_tickets()  # More of them may want gradients by now.
        by_dtype = itertools.groupby(
            sorted(parameters, key=lambda p: str(p.dtype)), key=lambda p: p.dtype
        )
        order = {id(parameter): place for place, parameter in enumerate(self._names)}
        for dtype, of_dtype in by_dtype:
            if self._codec and dtype != torch.float32:
                _log.warning("gradients of %s travel as they are: %s is for float32", dtype,
                             self._codec)  # fmt: skip
            prefix = self.group.next_prefix("weights")
            specs = [
                WeightSpec(
                    _name_of(prefix, self._names[parameter], order[id(parameter)]),
                    parameter,
                    self._codec if dtype == torch.float32 else "",
                )
                for parameter in sorted(of_dtype, key=lambda p: order[id(p)])
            ]
            self.sets.append(WeightSet(self.group.engine, prefix, specs, slots))
            self._registered.update(id(spec.parameter) for spec in specs)

    def _is_changed(self, weights: WeightSet) -> bool:
        return any(self._is_parameter_changed(weight.parameter) for weight in weights)

    def _is_parameter_changed(self, parameter: torch.Tensor) -> bool:
        return self._versions.get(id(parameter)) != parameter._version

    def _reload(self, weights: WeightSet) -> None:
        is_changed = self._is_changed(weights)
        if any(self._has_loaded_weights(weight.parameter) for weight in weights):
            self._load_weights_of_state(weights)
        elif is_changed or any(self._has_pending_weights(w.parameter) for w in weights):
            broadcast_from_first(self.group, [weight.parameter for weight in weights])
            self._load_weights(weights)
            self.keep_versions(weight.parameter for weight in weights)
        self._load_pending(weights)

    def _has_loaded_weights(self, parameter: torch.Tensor) -> bool:
        """Whether load_state() has given weights that count, whatever the parameter is, unless
        somebody has changed it since."""
        state = self._pending.get(id(parameter))
        has_weights = state is not None and state.has_weights
        return has_weights and not self._is_parameter_changed(parameter)

    def _load_weights_of_state(self, weights: WeightSet) -> None:
        """Where some have them: of the others the parameters count."""
        others = [w.parameter for w in weights if not self._has_loaded_weights(w.parameter)]
        broadcast_from_first(self.group, others)
        exact = {
            weight: self._pending[id(weight.parameter)].slots[WEIGHTS]
            for weight in weights
            if self._has_loaded_weights(weight.parameter)
        }

        def value_of(weight: Weight) -> torch.Tensor:
            return exact[weight] if weight in exact else weight.parameter.detach()

        weights.load_exactly(WEIGHTS, value_of)
        self.keep_versions(others)

    def _load_weights(self, weights: WeightSet) -> None:
        """Elements whose rounded value is what the parameter has keep their exact one."""
        parameters = [weight.parameter for weight in weights]
        if all(self.keeps_exactly(parameter) for parameter in parameters):
            weights.load(WEIGHTS, lambda w: w.parameter).take_all(write_to_parameter)
            return
        exact = self._exact_weights(weights)
        values = {
            id(p): torch.where(self.rounded(exact[p], p) == p.cpu(), exact[p], p.cpu().float())
            for p in parameters
            if p in exact
        }

        def value_of(weight: Weight) -> torch.Tensor:
            return values.get(id(weight.parameter), weight.parameter.detach())

        # What comes back are the owners' exact weights; parameters stay rounded.
        weights.load_exactly(WEIGHTS, value_of)

    def _exact_weights(self, weights: WeightSet) -> dict[torch.Tensor, torch.Tensor]:
        """By parameter: what is to be loaded, else what the owners have."""
        loaded = {
            weight.parameter: self._pending[id(weight.parameter)].slots[WEIGHTS]
            .cpu().float().view(weight.parameter.shape)
            for weight in weights
            if self._has_pending_weights(weight.parameter)
        }  # fmt: skip
        kept = weights.fetch_exactly(WEIGHTS) if weights.rounds else {}
        return {**kept, **loaded}

    def _has_pending_weights(self, parameter: torch.Tensor) -> bool:
        return WEIGHTS in self._pending.get(id(parameter), State(0, {})).slots

    def _load_pending(self, weights: WeightSet) -> None:
        """What load_state() was given for the parameters of one set."""
        states = {w: self._pending.pop(id(w.parameter), None) for w in weights}
        if not any(state is not None for state in states.values()):
            return
        for weight, state in states.items():
            weight.count = state.count if state is not None else weight.count
        for slot in range(WEIGHTS + 1, weights.slots):
            weights.load_exactly(
                slot, lambda w, s=slot: states[w].slots.get(s) if states[w] is not None else None
            )


def _name_of(prefix: str, name: str, place: int) -> str:
    whole = f"{prefix}/{name}"
    return whole if len(whole.encode()) <= _NAME_BYTES_MAX else f"{prefix}/#{place}"
