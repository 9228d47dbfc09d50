# SPDX-License-Identifier: Apache-2.0
"""Batches that one to four ranks divide evenly among them, and trainings on them in one process.

The mean of all ranks' gradients is the gradient of the whole batch, however many ranks there are.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch

INPUTS, HIDDEN, OUTPUTS = 20, 64, 5
ROWS = 24  # of a batch
ADAMW = {"lr": 0.01, "betas": (0.8, 0.99), "eps": 1e-6, "weight_decay": 0.05}
SGD = {"lr": 0.1, "momentum": 0.8, "weight_decay": 0.02}
WARMUP_STEPS = 3


def make_model() -> Any:
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(INPUTS, HIDDEN), torch.nn.GELU(), torch.nn.Linear(HIDDEN, OUTPUTS))


def differentiate(model: Any, step: int, rank: int = 0, ranks: int = 1) -> None:
    """On this rank's part of the step's batch."""
    generator = torch.Generator().manual_seed(1000 + step)
    inputs = torch.randn(ROWS, INPUTS, generator=generator)[rank::ranks]
    model.zero_grad()
    (model(inputs) - inputs[:, :OUTPUTS].sin()).square().mean().backward()


class Whole:
    """torch's AdamW on whole batches."""

    def __init__(self) -> None:
        self.model = make_model()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), **ADAMW)

    def train(self, steps: Sequence[int], ranks: int) -> None:
        for step in steps:
            differentiate(self.model, step)
            self.optimizer.step()


class OneStepLate:
    """OD-SGD: `model` has the global weights, and each rank computes at weights of its own."""

    def __init__(self) -> None:
        self.model = make_model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), **SGD)

    def train(self, steps: Sequence[int], ranks: int) -> None:
        """They begin at the global weights, as after finish()."""
        own = [copy.deepcopy(self.model) for _ in range(ranks)]
        for step in steps:
            for rank, model in enumerate(own):
                differentiate(model, step, rank, ranks)
            for weight, *locals_ in zip(self.model.parameters(), *(model.parameters() for model in own)):
                weight.grad = torch.stack([local.grad for local in locals_]).mean(0)
                for local in locals_:
                    decayed = local.grad + SGD["weight_decay"] * weight.data
                    local.data.copy_(weight.data - SGD["lr"] * decayed)
            self.optimizer.step()
            if step < WARMUP_STEPS:
                for model in own:
                    model.load_state_dict(self.model.state_dict())


REFERENCES = {"sharded": Whole, "od-sgd": OneStepLate}
