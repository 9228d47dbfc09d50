# SPDX-License-Identifier: Apache-2.0
"""An independent reference for what daemons do with tensors that have state slots: one owner keeps everything, in
torch.optim, and knows nothing of shards, chunks or codecs. What is tested against it are the trainers' equations."""

from __future__ import annotations

from typing import Any

import torch

import braid
from braid import Optimizer, StateBits, Update, UpdateAction, UpdateFlag


class Owner:
    """The owner of all of one tensor."""

    def __init__(self, count: int, dtype: torch.dtype, slots: int) -> None:
        self.dtype = dtype
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        self.slots = [torch.zeros(count, dtype=wide) for _ in range(slots)]

    def act(self, update: Update, inputs: list[torch.Tensor], reduction: int) -> torch.Tensor:
        if update.action == UpdateAction.LOAD:
            self._load(update, inputs[0])
        elif update.action != UpdateAction.FETCH:
            kept = [slot.clone() for slot in self.slots] if update.action == UpdateAction.ESTIMATE else None
            self._apply(update, reduced([each.to(self.slots[0].dtype) for each in inputs], reduction))
            if update.action == UpdateAction.PUSH:
                return torch.empty(0, dtype=self.dtype)
            weights = self.slots[0]
            if kept is not None:
                self.slots = kept
            if update.flags & UpdateFlag.PULL_BFLOAT16:
                weights = weights.to(torch.bfloat16)
            return weights.to(self.dtype)
        return self._values(update)

    def _load(self, update: Update, values: torch.Tensor) -> None:
        slot = self.slots[update.slot]
        if update.bits == StateBits.ROUNDED:
            slot.copy_(values)
            return
        bits = slot.view(torch.int32)
        given = values.view(torch.int16).int()
        if update.bits == StateBits.HIGH:
            bits.copy_(given << 16 | bits & 0xFFFF)
        else:
            bits.copy_(bits & ~0xFFFF | given & 0xFFFF)

    def _values(self, update: Update) -> torch.Tensor:
        slot = self.slots[update.slot]
        if update.bits == StateBits.ROUNDED:
            return slot.to(self.dtype)
        shift = 16 if update.bits == StateBits.HIGH else 0
        return (slot.view(torch.int32) >> shift).to(torch.int16).view(self.dtype)

    def _apply(self, update: Update, gradient: torch.Tensor) -> None:
        weights = self.slots[0]
        weights.requires_grad_(False)
        parameter = torch.nn.Parameter(weights)
        parameter.grad = gradient
        betas = update.momentum, update.second_momentum
        decoupled = bool(update.flags & UpdateFlag.DECOUPLED_DECAY)
        common = {"lr": update.learning_rate, "weight_decay": update.weight_decay}
        if update.optimizer == Optimizer.LION:
            assert decoupled
            self._lion(update, gradient)
            return
        if update.optimizer == Optimizer.SGD:
            optimizer: Any = torch.optim.SGD(
                [parameter], momentum=update.momentum, dampening=update.dampening,
                nesterov=bool(update.flags & UpdateFlag.NESTEROV), foreach=False, **common,
            )  # fmt: skip
            if update.count > 1 and update.momentum:
                optimizer.state[parameter]["momentum_buffer"] = self.slots[1]
        else:
            kind = torch.optim.AdamW if decoupled else torch.optim.Adam
            optimizer = kind([parameter], betas=betas, eps=update.epsilon, foreach=False, **common)
            optimizer.state[parameter] = {
                "step": torch.tensor(float(update.count - 1)), "exp_avg": self.slots[1], "exp_avg_sq": self.slots[2],
            }  # fmt: skip
        optimizer.step()
        buffer = optimizer.state[parameter].get("momentum_buffer")
        if buffer is not None:
            self.slots[1].copy_(buffer)

    def _lion(self, update: Update, gradient: torch.Tensor) -> None:
        weights, momentum = self.slots
        weights.mul_(1 - update.learning_rate * update.weight_decay)
        weights.sub_(update.learning_rate * torch.sign(momentum.lerp(gradient, 1 - update.momentum)))
        momentum.lerp_(gradient, 1 - update.second_momentum)


def reduced(inputs: list[torch.Tensor], reduction: int) -> torch.Tensor:
    stacked = torch.stack(inputs)
    if reduction == braid.Reduction.MAX:
        return stacked.amax(0)
    if reduction == braid.Reduction.MIN:
        return stacked.amin(0)
    total = stacked.sum(0, dtype=stacked.dtype)
    return total / len(inputs) if reduction == braid.Reduction.AVERAGE else total
