# SPDX-License-Identifier: Apache-2.0
"""What braid's owners do of torch's optimizers: which there are, their settings, their state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from braid import Optimizer, UpdateFlag
from braid.torch.weights.weight import FIRST_MOMENT, SECOND_MOMENT, Settings
from braid.torch.weights.weight_set import WeightSet

# What braid adds to torch's state of a parameter: the owner's exact weights, where parameters are
# rounded ones.
EXACT_WEIGHTS = "weights"
# Types that owners update.
_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_REFUSED = {
    "amsgrad": "the owner keeps two moments, and no maximum of the second one",
    "maximize": "give the gradient of the negative loss",
    "capturable": "the update is the daemon's, and no part of a CUDA graph",
    "differentiable": "autograd does not see the daemons' update",
}


class Lion(torch.optim.Optimizer):
    """The settings of Lion, and no step: ShardedOptimizer(params, "lion") has that.

    Chen et al., "Symbolic Discovery of Optimization Algorithms", NeurIPS 2023.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        if not 0 <= float(lr) or not all(0 <= beta < 1 for beta in betas) or weight_decay < 0:
            raise ValueError(
                f"Lion: lr and weight_decay are 0 or more and betas are from 0 to below 1, not "
                f"lr={lr}, betas={betas}, weight_decay={weight_decay}"
            )
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})


class Rule:
    """One of torch's optimizers as the owners of braid apply it."""

    # The names that torch gives to what is in the slots.
    state_names: Mapping[int, str] = {}

    def settings(self, group: Mapping[str, Any]) -> Settings:
        """The settings of a parameter group as it is at this moment."""
        raise NotImplementedError

    def slots(self, groups: Sequence[Mapping[str, Any]]) -> int:
        """How many values the owner keeps for an element."""
        return 1 + len(self.state_names)

    def to_torch(self, count: int, slots: Mapping[int, torch.Tensor]) -> dict[str, Any]:
        """A parameter's state as torch has it after so many updates."""
        state: dict[str, Any] = {"step": torch.tensor(float(count))}
        state.update((name, slots[slot]) for slot, name in self.state_names.items())
        return state

    def from_torch(self, state: Mapping[str, Any]) -> tuple[int, dict[int, torch.Tensor]]:
        """The other way: updates so far, and values by slot."""
        missing = [name for name in ("step", *self.state_names.values()) if name not in state]
        if missing:
            raise ValueError(
                f"the state of a parameter has {sorted(state)} and lacks {missing}: it is another "
                "optimizer's"
            )
        return int(state["step"]), {s: state[name] for s, name in self.state_names.items()}


class Sgd(Rule):
    state_names = {FIRST_MOMENT: "momentum_buffer"}

    def settings(self, group: Mapping[str, Any]) -> Settings:
        return Settings(
            int(Optimizer.SGD),
            float(group["lr"]),
            momentum=float(group["momentum"]),
            dampening=float(group["dampening"]),
            weight_decay=float(group["weight_decay"]),
            flags=int(UpdateFlag.NESTEROV) if group["nesterov"] else 0,
        )

    def slots(self, groups: Sequence[Mapping[str, Any]]) -> int:
        return 2 if any(group["momentum"] for group in groups) else 1

    def to_torch(self, count: int, slots: Mapping[int, torch.Tensor]) -> dict[str, Any]:
        return {"momentum_buffer": slots.get(FIRST_MOMENT) if count else None}

    def from_torch(self, state: Mapping[str, Any]) -> tuple[int, dict[int, torch.Tensor]]:
        momentum = state.get("momentum_buffer")
        # torch does not count SGD's updates; what matters is whether there is a momentum already.
        return (0, {}) if momentum is None else (1, {FIRST_MOMENT: momentum})


class Adam(Rule):
    state_names = {FIRST_MOMENT: "exp_avg", SECOND_MOMENT: "exp_avg_sq"}

    def __init__(self, decoupled: bool) -> None:
        self._flags = int(UpdateFlag.DECOUPLED_DECAY) if decoupled else 0

    def settings(self, group: Mapping[str, Any]) -> Settings:
        beta1, beta2 = group["betas"]
        flags = self._flags
        if group.get("decoupled_weight_decay"):
            flags |= int(UpdateFlag.DECOUPLED_DECAY)
        return Settings(
            int(Optimizer.ADAM),
            float(group["lr"]),
            momentum=float(beta1),
            second_momentum=float(beta2),
            epsilon=float(group["eps"]),
            weight_decay=float(group["weight_decay"]),
            flags=flags,
        )


class LionRule(Rule):
    state_names = {FIRST_MOMENT: "exp_avg"}

    def settings(self, group: Mapping[str, Any]) -> Settings:
        beta1, beta2 = group["betas"]
        return Settings(
            int(Optimizer.LION),
            float(group["lr"]),
            momentum=float(beta1),
            second_momentum=float(beta2),
            weight_decay=float(group["weight_decay"]),
            flags=int(UpdateFlag.DECOUPLED_DECAY),
        )

    def to_torch(self, count: int, slots: Mapping[int, torch.Tensor]) -> dict[str, Any]:
        return {"exp_avg": slots[FIRST_MOMENT]}

    def from_torch(self, state: Mapping[str, Any]) -> tuple[int, dict[int, torch.Tensor]]:
        if "exp_avg" not in state:
            raise ValueError(f"the state of a parameter has {sorted(state)} and lacks exp_avg")
        return 1, {FIRST_MOMENT: state["exp_avg"]}


def rule_of(optimizer_class: Any) -> tuple[type[torch.optim.Optimizer], Rule]:
    """The class that checks an optimizer's arguments, and its rule. TypeError names what there is."""
    if optimizer_class == "lion":
        return Lion, LionRule()
    rules: dict[Any, Rule] = {
        torch.optim.SGD: Sgd(),
        torch.optim.Adam: Adam(decoupled=False),
        torch.optim.AdamW: Adam(decoupled=True),
        Lion: LionRule(),
    }
    rule = rules.get(optimizer_class) if isinstance(optimizer_class, type) else None
    if rule is None:
        raise TypeError(
            "the daemons update weights as torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW or "
            f'"lion", not as {optimizer_class!r}'
        )
    return optimizer_class, rule


def settings_of(
    rule: Rule, groups: Sequence[Mapping[str, Any]], pull_flags: int
) -> dict[int, Settings]:
    """By the parameter's id, of all groups as they are now. `pull_flags` are for float32."""
    settings = {}
    for group in groups:
        narrow = rule.settings(group)
        wide = narrow._replace(flags=narrow.flags | pull_flags)
        for parameter in group["params"]:
            settings[id(parameter)] = wide if parameter.dtype == torch.float32 else narrow
    return settings


def refuse_late_momentum(
    sets: Iterable[WeightSet], settings: Mapping[int, Settings], name: str
) -> None:
    for weights in sets:
        if weights.slots == 1 and any(settings[id(w.parameter)].momentum for w in weights):
            raise RuntimeError(
                f"{name}: it began without momentum, so its owners keep none; give a momentum from the "
                "first step on, or make another optimizer"
            )


def refuse_options(group: Mapping[str, Any], name: str) -> None:
    """ValueError names an option that owners do not have. `foreach` and `fused` say nothing about
    the result, and are passed over."""
    for option, reason in _REFUSED.items():
        if group.get(option):
            raise ValueError(f"{name} does not have {option}=True: {reason}")
    for parameter in group["params"]:
        if parameter.dtype not in _DTYPES:
            raise ValueError(
                f"{name} updates parameters of float32, float64, float16 and bfloat16, not of "
                f"{parameter.dtype}"
            )


def refuse_gradient(parameter: torch.Tensor, name: str) -> None:
    gradient = parameter.grad
    if gradient is not None and gradient.layout != torch.strided:
        raise RuntimeError(f"{name} does not take sparse gradients: make the embedding a dense one")

