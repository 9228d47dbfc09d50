# SPDX-License-Identifier: Apache-2.0
"""The models that ddp_ways.py trains."""

from typing import Any

import torch
import torch.distributed as dist

GROUP: list[Any] = [None]  # of the model that is being trained


def small(dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(12, 20, dtype=dtype), torch.nn.Tanh(), torch.nn.Linear(20, 3, dtype=dtype)
    )


class Shared(torch.nn.Module):
    """One weight in two places, a frozen one, and an empty one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(12, 12)
        self.second = torch.nn.Linear(12, 12)
        self.second.weight = self.first.weight
        self.frozen = torch.nn.Linear(12, 12).requires_grad_(False)
        self.empty = torch.nn.Parameter(torch.zeros(0))
        self.last = torch.nn.Linear(12, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.frozen(self.second(torch.tanh(self.first(x))))
        return self.last(x) + self.empty.sum()


class Mixed(torch.nn.Module):
    """Parameters of several types, also one that goes as whole buckets."""

    def __init__(self, dtypes: tuple[torch.dtype, ...]) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(12, 12, dtype=dtype) for dtype in dtypes)
        self.last = torch.nn.Linear(12, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            y = layer(x.to(layer.weight.dtype))
            x = torch.tanh(y.real if y.is_complex() else y).float()
        return self.last(x)


class Optional(torch.nn.Module):
    """Ranks and steps use different parts."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(12, 12)
        self.parts = torch.nn.ModuleList(torch.nn.Linear(12, 12) for _ in range(3))
        self.last = torch.nn.Linear(12, 3)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        part = self.parts[(self.calls + dist.get_rank()) % 3]
        return self.last(torch.tanh(part(self.first(x))))


class Normed(torch.nn.Module):
    """A collective of the same group in the middle of the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(12, 12)
        self.last = torch.nn.Linear(12, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        if self.training:
            x.register_hook(self._reduced)
        return self.last(torch.tanh(x))

    @staticmethod
    def _reduced(gradient: torch.Tensor) -> torch.Tensor:
        total = gradient.sum().detach().clone()
        dist.all_reduce(total, group=GROUP[0])
        return gradient + 1e-3 * total
