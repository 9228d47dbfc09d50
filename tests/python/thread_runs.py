# SPDX-License-Identifier: Apache-2.0
"""What tests train on ranks that are threads, and how they look at it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

MODEL = torch.nn.Linear(4, 3).double()
RANKS = 3
MOMENTUM = {"momentum": 0.9, "weight_decay": 0.01}


def gradient(call: int, rank: int, parameter: Any) -> Any:
    generator = torch.Generator().manual_seed(100 * call + rank)
    noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return parameter.detach() - noise.to(parameter.dtype)


class Training:
    """A training of MODEL with an optimizer of braid, by gradients that each rank makes up."""

    def __init__(self, group: Any, kind: Any, *arguments: Any, dtype: Any = torch.float64, **options: Any) -> None:
        self.rank = group.rank()
        self.parameters = list(copy.deepcopy(MODEL).to(dtype).parameters())
        self.optimizer = kind(self.parameters, *arguments, process_group=group, **{"lr": 0.1, **options})

    def step(self, number: int) -> None:
        for parameter in self.parameters:
            parameter.grad = gradient(number, self.rank, parameter)
        self.optimizer.step()

    def train(self, first: int, last: int) -> Training:
        for number in range(first, last):
            self.step(number)
        return self

    def values(self) -> list[Any]:
        return values_of(self.parameters)


class AccoTraining(Training):
    def __init__(self, group: Any, kind: Any = torch.optim.AdamW, dtype: Any = torch.float64, **options: Any) -> None:
        from braid.torch import Acco

        super().__init__(group, Acco, kind, dtype=dtype, **options)

    def finished(self) -> list[Any]:
        self.optimizer.finish()
        return self.values()


def values_of(trained: Any) -> list[Any]:
    """The values of a model's parameters, or of a list of parameters, as they are now."""
    parameters = trained.parameters() if isinstance(trained, torch.nn.Module) else trained
    return [parameter.detach().clone() for parameter in parameters]


def equal(one: list[Any], other: list[Any]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other))


def assert_close(mine: list[Any], other: list[Any]) -> None:
    assert all(torch.allclose(a, b, rtol=1e-12, atol=1e-14) for a, b in zip(mine, other))


def error_of(call: Callable[[], Any], kind: Any = RuntimeError) -> str:
    with pytest.raises(kind) as error:
        call()
    return str(error.value)
