# SPDX-License-Identifier: Apache-2.0
"""Modules that wait for their own parameters just before their forward pass, and for no others."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch

from braid.torch.operations.untraced import untraced

# These modules of torch.nn do nothing with parameters but call the modules that have them.
# Others may use those of their children without a call: MultiheadAttention does.
_CONTAINERS = (
    torch.nn.Sequential,
    torch.nn.ModuleList,
    torch.nn.ModuleDict,
    torch.nn.Transformer,
    torch.nn.TransformerEncoder,
    torch.nn.TransformerDecoder,
)


class ForwardWaits:
    """Hooks on a model's modules. `wait_for(parameter)` returns at once where there is no need.

    The model's state_dict() waits for everything.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        parameters: Sequence[torch.Tensor],
        wait_for: Callable[[torch.Tensor], None],
        wait_for_all: Callable[[], None],
    ) -> None:
        of_model = {id(parameter) for parameter in model.parameters()}
        missing = sum(id(parameter) not in of_model for parameter in parameters)
        if missing:
            raise ValueError(
                f"{missing} of {len(parameters)} parameters are not the model's: no module of it "
                "would wait for them"
            )
        self.wait_for = wait_for
        self.wait_for_all = wait_for_all
        mine = {id(parameter) for parameter in parameters}
        for module in model.modules():
            used = [p for p in _used_by(module) if id(p) in mine]
            if used:
                module.register_forward_pre_hook(_Hook(self, used))
            module.register_state_dict_pre_hook(_Hook(self))


class _Hook:
    """Waits for these parameters; None: for everything. Does nothing when its optimizer is gone, nor
    in a copy of the model."""

    def __init__(
        self, waits: ForwardWaits | None, parameters: Sequence[torch.Tensor] | None = None
    ) -> None:
        self._waits = weakref.ref(waits) if waits is not None else lambda: None
        self._parameters = parameters

    def __reduce__(self) -> Any:
        return _Hook, (None,)

    @untraced
    @torch.no_grad()
    def __call__(self, *_: Any) -> None:
        waits = self._waits()
        if waits is not None and self._parameters is None:
            waits.wait_for_all()
        elif waits is not None:
            for parameter in self._parameters:
                waits.wait_for(parameter)


def _used_by(module: torch.nn.Module) -> list[torch.Tensor]:
    is_torchs = type(module).__module__.startswith("torch.nn.modules.")
    reaches_into_children = is_torchs and not isinstance(module, _CONTAINERS)
    return list(module.parameters(recurse=reaches_into_children))
