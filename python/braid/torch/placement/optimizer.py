# SPDX-License-Identifier: Apache-2.0
"""An optimizer whose parameters are each updated by one rank.

Layer-sharded Muon, as in Megatron-LM: orthogonalizing a matrix needs the whole of it, so a matrix
is not cut, and one rank updates it for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from braid.torch.ddp import claims
from braid.torch.group.training_group import names_of
from braid.torch.methods.owners_optimizer import loss_of
from braid.torch.placement.homes import Homes, newton_schulz_seconds


class PlacedOptimizer(torch.optim.Optimizer):
    """What placed() returns."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        cost: Callable[[tuple[int, ...]], float],
        process_group: Any,
        model: torch.nn.Module | None,
    ) -> None:
        if isinstance(optimizer, PlacedOptimizer):
            raise TypeError("placed: the optimizer is placed already")
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self._inner = optimizer
        self._cost = cost
        self._process_group = process_group
        self._model = model
        self._homes: Homes | None = None
        self._parameters: dict[str, torch.Tensor] = {}
        self._follow()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Before the first step only: then parameters have their homes."""
        if not hasattr(self, "_inner"):  # The base class adds the groups that are there already.
            return super().add_param_group(param_group)
        if self._homes is not None:
            raise RuntimeError(
                "placed: the first step() has given parameters their homes; add groups before it, "
                "or make another optimizer for the new parameters"
            )
        self._inner.add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes one step on all ranks. Raises DistBackendError, which names what has failed."""
        loss = loss_of(closure)
        homes = self._at_home()
        averaged = claims.ids_in_ddp()
        homes.gather_to_owner(
            {
                name: parameter.grad
                for name, parameter in self._parameters.items()
                if parameter.grad is not None and id(parameter) not in averaged
            }
        )
        groups_of = {
            id(parameter): group for group in self.param_groups for parameter in group["params"]
        }
        all_of = [(group, group["params"]) for group in self.param_groups]

        def update(name: str) -> None:
            parameter = self._parameters[name]
            groups_of[id(parameter)]["params"] = [parameter]
            self._inner.step()
            groups_of[id(parameter)]["params"] = []

        for group, _ in all_of:
            group["params"] = []
        try:
            homes.spread(self._parameters, update)
        finally:
            for group, parameters in all_of:
                group["params"] = parameters
        return loss

    def state_dict(self) -> dict[str, Any]:
        """What the optimizer would have that is not placed, with the state of all homes: a
        collective, to be called on all ranks."""
        homes = self._at_home()
        mine = self._inner.state_dict()
        state = {}
        for place, name in enumerate(self._parameters):
            value = homes.spread_object(name, mine["state"].get(place))
            if value is not None:
                state[place] = value
        return {**mine, "state": state}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """A state of state_dict(), or of the optimizer that is not placed."""
        self._inner.load_state_dict(dict(state_dict))
        self._follow()
        homes = self._at_home()
        for name, parameter in self._parameters.items():
            if not homes.is_own(name):
                self.state.pop(parameter, None)

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a placed optimizer cannot be copied or pickled; its state_dict() can")

    def _follow(self) -> None:
        """Schedulers change the groups of this one, and the wrapped one reads them."""
        self.param_groups = self._inner.param_groups
        self.state = self._inner.state
        names = names_of(self.param_groups, self._model)
        self._parameters = {name: parameter for parameter, name in names.items()}

    def _at_home(self) -> Homes:
        if self._homes is None:
            self._follow()
            self._homes = Homes(
                self._parameters, self._cost, process_group=self._process_group, work="updates"
            )
        return self._homes


def placed(
    optimizer: torch.optim.Optimizer,
    *,
    cost: Callable[[tuple[int, ...]], float] = newton_schulz_seconds,
    process_group: Any = None,
    model: torch.nn.Module | None = None,
) -> PlacedOptimizer:
    """The same optimizer, whose work is divided between the ranks: each parameter has a home, which
    keeps its state, updates it, and spreads it to the others while the next one is computed.

        optimizer = braid.torch.placed(torch.optim.Muon(matrices, lr=0.02))

    For optimizers that update each parameter by itself, at a cost that is worth it: Muon, Shampoo,
    SOAP. Parameters that another optimizer has keep their own rule. Made, stepped and asked for
    its state on all ranks alike. Afterwards all ranks have the same bits, which are those of the
    wrapped optimizer.

    Gradients are averaged by a DistributedDataParallel around the model, or else by step(), at
    home only. A torch.amp.GradScaler needs the DistributedDataParallel: all ranks must find the
    same infinities. A parameter has a gradient on all ranks, or on none; then it is passed over.

    `cost` says how long the step of a shape takes, in seconds, for braid.place; only what costs
    are beside each other counts. `model` names parameters in messages.
    """
    return PlacedOptimizer(optimizer, cost, process_group, model)
