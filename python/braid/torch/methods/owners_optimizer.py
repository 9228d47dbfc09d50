# SPDX-License-Identifier: Apache-2.0
"""What the optimizers have in common whose weights the owners of a set update."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from braid.torch.ddp import claims
from braid.torch.group.training_group import braid_group, broadcast_from_first
from braid.torch.weights.rules import refuse_options


class OwnersOptimizer(torch.optim.Optimizer, claims.Claimant):
    """An optimizer whose parameters are dealt out to their owners, once and for all."""

    def __init__(
        self,
        template: torch.optim.Optimizer,
        name: str,
        process_group: Any,
        model: torch.nn.Module | None,
    ) -> None:
        """Has the param groups and the defaults of `template`, and gives all ranks the parameters
        of the group's first one. `name` is for messages, and `model` names parameters in them."""
        self.name = name
        self._model = model
        self._is_dealt_out = False
        for group in template.param_groups:
            refuse_options(group, name)
        self._group = braid_group(process_group, name)
        super().__init__(template.param_groups, template.defaults)
        broadcast_from_first(self._group, self._parameters())

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Before the first step only: then the parameters are dealt out to their owners."""
        if self._is_dealt_out:
            raise RuntimeError(
                f"{self.name}: parameters are dealt out to their owners by the first step(); add "
                "groups before it, or make another optimizer for the new parameters"
            )
        super().add_param_group(param_group)
        refuse_options(self.param_groups[-1], self.name)
        claims.claim(self, self.param_groups[-1]["params"])

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError(f"{self.name} cannot be copied or pickled; its state_dict() can")

    def _parameters(self) -> list[torch.Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def _load_groups(self, state_dict: dict[str, Any]) -> None:
        """Takes the param groups, and not the state: torch would cast its values to the parameters'
        types."""
        groups = [dict(group) for group in state_dict["param_groups"]]
        super().load_state_dict({**state_dict, "state": {}, "param_groups": groups})
        for group in self.param_groups:
            refuse_options(group, self.name)


def loss_of(closure: Callable[[], Any] | None) -> Any:
    """What the closure of a step() returns, under which gradients are computed."""
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


def places_of(state_dict: Mapping[str, Any]) -> list[Any]:
    """What a state_dict() calls the parameters, in their order."""
    return [place for group in state_dict["param_groups"] for place in group["params"]]
