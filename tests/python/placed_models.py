# SPDX-License-Identifier: Apache-2.0
"""Parameters, gradients of small integers, and trainings that no placed optimizer may differ from."""

from __future__ import annotations

from typing import Any

import torch

SHAPES = {"wide": (8, 24), "tall": (20, 6), "square": (12, 12), "small": (3, 4), "other": (5, 16)}
STEPS = 4


def make_parameters() -> dict[str, Any]:
    generator = torch.Generator().manual_seed(5)
    return {
        name: torch.nn.Parameter(torch.randn(shape, generator=generator)) for name, shape in SHAPES.items()
    }


def gradient(step: int, rank: int, name: str) -> torch.Tensor:
    """Small integers: their mean over two or four ranks is exact."""
    generator = torch.Generator().manual_seed(1000 * step + 10 * rank + list(SHAPES).index(name))
    return torch.randint(-8, 9, SHAPES[name], generator=generator).float()


def give_gradients(parameters: dict[str, Any], step: int, ranks: range) -> None:
    for name, parameter in parameters.items():
        parameter.grad = torch.stack([gradient(step, rank, name) for rank in ranks]).mean(0)


def optimizer_of(kind: str, parameters: dict[str, Any]) -> Any:
    values = list(parameters.values())
    groups = [{"params": values[:2], "lr": 0.05}, {"params": values[2:]}]
    if kind == "Muon":
        return torch.optim.Muon(groups, lr=0.02)
    return torch.optim.AdamW(groups, lr=0.02)


def scheduler_of(optimizer: Any) -> Any:
    return torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)


def alone(kind: str, ranks: int, steps: int = STEPS) -> tuple[dict[str, Any], Any]:
    parameters = make_parameters()
    optimizer = optimizer_of(kind, parameters)
    scheduler = scheduler_of(optimizer)
    for step in range(steps):
        give_gradients(parameters, step, range(ranks))
        optimizer.step()
        scheduler.step()
    return parameters, optimizer
