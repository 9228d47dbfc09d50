# SPDX-License-Identifier: Apache-2.0
"""Training that does not wait for the sum of its last gradients: the steps of DelayedOptimizer.

Step i has the gradient g of this worker at its own weights x:

    wait until the global state W of the last step is here      (the delay is one step, never more)
    submit g, of which the owners make the next global state    (before W is copied: the network waits)
    x ← local update of W, or between pulls of x, with g; go on

The owners' step is SGD with momentum as torch has it: v ← m v + g + λ W; W ← W - η v. (The papers'
v has the learning rate in it, which is the same as long as that does not change.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from braid import UpdateFlag
from braid.torch.group.nodes import node_group
from braid.torch.group.process_group import BraidProcessGroup
from braid.torch.group.training_group import average
from braid.torch.methods.delay import Delay
from braid.torch.methods.local_updates import PREVIOUS, keeps_previous, local_update
from braid.torch.methods.owners_optimizer import places_of
from braid.torch.operations import devices
from braid.torch.weights.kept import KeptWeights, State
from braid.torch.weights.rounds import Rounds
from braid.torch.weights.rules import Rule, Sgd, refuse_gradient, refuse_late_momentum, settings_of
from braid.torch.weights.weight import FIRST_MOMENT, WEIGHTS, Weight, write_to_parameter

_SAVED = "delayed"
_SAVED_WEIGHTS = "weights"
_SAVED_LOCAL = "local"
Groups = Sequence[Mapping[str, Any]]


class DelayedSteps:
    """The steps of one optimizer's parameters, alike on all ranks, on the thread that trains."""

    def __init__(
        self,
        groups: Callable[[], Groups],
        delay: Delay,
        group: BraidProcessGroup,
        names: Mapping[torch.Tensor, str],
        who: str,
    ) -> None:
        """`groups` are those of a torch.optim.SGD, as they are at each step."""
        self.delay = delay
        self.steps = 0
        self._groups = groups
        self._group = group
        self._who = who
        self._rule: Rule = Sgd()
        self._kept = KeptWeights(
            group, names, codec="" if delay.warmup_steps else delay.codec,
            pull_bf16=delay.pull == "bf16",
        )  # fmt: skip
        self._has_codec = not delay.warmup_steps
        self._node: BraidProcessGroup | None = None
        self._knows_node = delay.worker == "rank"
        # The round in flight, and whether the new weights are its results.
        self._rounds = Rounds([])
        self._is_pull = False
        # Steps since the parameters were the global state; whether they are at this moment.
        self._drift = 0
        self._is_global = True
        # Global weights that have come and are not in the parameters yet.
        self._arrived: dict[int, torch.Tensor] = {}
        self._state: dict[int, dict[str, Any]] = {id(p): {} for p in names}

    @property
    def global_state(self) -> Rounds:
        """When the global state of the last step is here. What it says is in the parameters after
        finish(), or in part after the next step."""
        return self._rounds

    def step(self) -> None:
        for place, parameter in enumerate(self._parameters()):
            refuse_gradient(parameter, self._who)
            if id(parameter) not in self._state:
                self._state[id(parameter)] = {}
                self._kept.add(parameter, f"#{place}")
        if self._kept.is_changed():
            self._begin_anew()
        self._kept.prepare(self._rule.slots(self._groups()))
        if self.steps < self.delay.warmup_steps:
            self._synchronous_step()
        else:
            self._delayed_step()
        self.steps += 1

    def finish(self) -> None:
        """Waits for everything and makes the parameters the global state, on all ranks together."""
        rounds, self._rounds = self._rounds, Rounds([])
        arrived, self._arrived = self._arrived, {}
        if self._is_pull and self.delay.pull == "full" and not self._is_global and not arrived:
            rounds.take_all(write_to_parameter)
        else:
            rounds.take_all()
            if not self._is_global:
                self._kept.fetch_weights(write_to_parameter)
        self._at_global_state()

    def settle(self) -> None:
        """Makes the parameters the latest global state that this rank can have by itself: that of
        the last pull. The other ranks need not do the same."""
        if self._is_global:
            return
        if self._is_pull:
            self._arrive(self._rounds, is_pull=True)
            self._at_global_state()
        else:
            for parameter in self._registered():
                parameter.data.copy_(self._state[id(parameter)][PREVIOUS])

    def state_dict(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """Adds to torch's own, whose `state` is empty. Changes nothing in training."""
        if not self._is_global and self._is_pull and not self._arrived:
            self._rounds.take_all(self._keep_for_later)
        self._rounds.take_all()
        places = dict(zip(map(id, self._parameters()), places_of(state_dict)))
        for parameter, state in self._kept.state_of((WEIGHTS, FIRST_MOMENT)).items():
            weights = state.slots[WEIGHTS]
            entry = self._rule.to_torch(state.count, state.slots)
            entry[_SAVED_WEIGHTS] = weights
            entry[_SAVED_LOCAL] = parameter.detach().cpu().clone()
            if PREVIOUS in self._state[id(parameter)]:
                entry[PREVIOUS] = self._state[id(parameter)][PREVIOUS].cpu().clone()
            state_dict["state"][places[id(parameter)]] = entry
        state_dict[_SAVED] = {
            "steps": self.steps,
            "drift": self._drift,
            "is_global": self._is_global,
            "has_arrived": bool(self._arrived),
        }
        return state_dict

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """What state_dict() has added, or the state of a torch.optim.SGD. Parameters become what
        they were here."""
        self._rounds.take_all()
        self._begin_anew()
        at = {place: p for p, place in zip(self._parameters(), places_of(state_dict))}
        saved = state_dict.get(_SAVED, {})
        states = {}
        for place, entry in state_dict["state"].items():
            parameter = at[place]
            count, slots = self._rule.from_torch(entry)
            has_weights = _SAVED_WEIGHTS in entry
            if has_weights:
                slots[WEIGHTS] = entry[_SAVED_WEIGHTS]
                parameter.data.copy_(entry[_SAVED_LOCAL])
                if saved.get("has_arrived"):
                    self._arrived[id(parameter)] = entry[_SAVED_WEIGHTS].to(parameter)
            if PREVIOUS in entry:
                self._state[id(parameter)][PREVIOUS] = entry[PREVIOUS].to(parameter).clone()
            states[parameter] = State(count, slots, has_weights)
        self.steps = saved.get("steps", self.steps)
        self._drift = saved.get("drift", 0)
        self._is_global = saved.get("is_global", True)
        self._is_pull = bool(self._arrived)
        if not self._has_codec and self.steps > self.delay.warmup_steps:
            self._kept.renew(self.delay.codec)
            self._has_codec = True
        self._kept.load_state(states)
        # Weights that are not among them are the parameters, which the next step loads.
        self._kept.keep_versions(p for p, state in states.items() if state.has_weights)

    def _synchronous_step(self) -> None:
        self._apply(pull=True)
        self._rounds.take_all(write_to_parameter)
        self._at_global_state()

    def _delayed_step(self) -> None:
        if not self._has_codec:
            # Warm-up travels in full. The owners take over what they had, as another registration.
            self._has_codec = True
            if self.delay.codec:
                self._kept.renew(self.delay.codec)
        self._make_ready()
        last, is_pull = self._rounds, self._is_pull
        # Where the network is the limit it has the next gradients before the last ones are through,
        # and does not stand still while this rank awakes and copies.
        ahead = not last.done() and self._kept.make_room_ahead()
        if not ahead:
            last.wait()
        self._apply(pull=(self._drift + 1) % self.delay.pull_every == 0, ahead=ahead)
        self._average_within_node()
        if is_pull and not last.is_over and not self._arrived:
            self._update_from(last)
        else:
            self._arrive(last, is_pull=is_pull)
            self._update_locally()
        self._is_global = False
        self._drift = (self._drift + 1) % self.delay.pull_every

    def _arrive(self, rounds: Rounds, *, is_pull: bool) -> None:
        """Takes what a step's round has brought. After a pull the parameters are the global state."""
        if self._arrived:
            arrived, self._arrived = self._arrived, {}
            for parameter in self._registered():
                if id(parameter) in arrived:
                    parameter.data.copy_(arrived[id(parameter)])
            self._is_global = True
        elif is_pull and not rounds.is_over:
            rounds.take_all(write_to_parameter)
            self._is_global = True
        else:
            rounds.take_all()

    def _apply(self, *, pull: bool, ahead: bool = False) -> None:
        flags = int(UpdateFlag.PULL_BFLOAT16) if pull and self.delay.pull == "bf16" else 0
        settings = settings_of(self._rule, self._groups(), flags)
        refuse_late_momentum(self._kept.sets, settings, self._who)
        self._rounds = self._kept.apply(
            lambda parameter: settings[id(parameter)],
            lambda parameter: parameter.grad,
            pull=pull,
            ahead=ahead,
        )
        self._is_pull = pull

    def _average_within_node(self) -> None:
        """The gradients of this node's ranks, which then all update alike."""
        if self._node is None:
            return
        for parameter in self._registered():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        average(self._node, [parameter.grad for parameter in self._registered()])

    def _update_from(self, pulled: Rounds) -> None:
        """The local update of the global weights that a round has brought."""
        groups = self._group_of_each()

        def update(weight: Weight, result: torch.Tensor) -> None:
            parameter = weight.parameter
            if devices.cuda.holds(parameter) and not devices.cuda.holds(result):
                write_to_parameter(weight, result)
                arrived = None
            else:
                arrived = result.view(parameter.shape)
            self._update(parameter, groups[id(parameter)], arrived, is_first=True)

        pulled.take_all(update)

    def _update_locally(self) -> None:
        groups = self._group_of_each()
        for parameter in self._registered():
            self._update(parameter, groups[id(parameter)], None, is_first=self._is_global)

    def _update(
        self,
        parameter: torch.Tensor,
        group: Mapping[str, Any],
        arrived: torch.Tensor | None,
        *,
        is_first: bool,
    ) -> None:
        local_lr = group.get("local_lr", self.delay.local_lr)
        gradient = parameter.grad
        local_update(
            self.delay,
            parameter.data,
            torch.zeros_like(parameter) if gradient is None else gradient,
            self._state[id(parameter)],
            rate=float(group["lr"] if local_lr is None else local_lr),
            weight_decay=float(group["weight_decay"]),
            arrived=arrived,
            is_first=is_first,
        )

    def _group_of_each(self) -> dict[int, Mapping[str, Any]]:
        return {id(p): group for group in self._groups() for p in group["params"]}

    def _make_ready(self) -> None:
        """Before the first delayed step, and where parameters have come since the last one."""
        if not self._knows_node:
            self._node = node_group(self._group)
            self._knows_node = True
        if keeps_previous(self.delay):
            for parameter in self._registered():
                state = self._state[id(parameter)]
                if PREVIOUS not in state:
                    state[PREVIOUS] = parameter.detach().clone()

    def _at_global_state(self) -> None:
        self._drift = 0
        self._is_global = True
        self._is_pull = False

    def _begin_anew(self) -> None:
        """Parameters were changed by somebody else: what is on its way comes to nothing."""
        self._rounds.take_all()
        self._arrived = {}
        self._at_global_state()

    def _keep_for_later(self, weight: Weight, result: torch.Tensor) -> None:
        shaped = result.view(weight.parameter.shape)
        self._arrived[id(weight.parameter)] = shaped.to(weight.parameter.device, copy=True)

    def _parameters(self) -> list[torch.Tensor]:
        return [parameter for group in self._groups() for parameter in group["params"]]

    def _registered(self) -> list[torch.Tensor]:
        return [weight.parameter for weights in self._kept.sets for weight in weights]
