# SPDX-License-Identifier: Apache-2.0
"""A model with the parameters of a trace, whose forward and backward pass are waited through.

Autograd and what hangs on it see an ordinary model: each layer has one parameter, the backward pass gives its gradient
when the trace says so, and then goes on to the layer before.
"""

import time
from collections.abc import Sequence

import torch
from torch import nn


class Clock:
    """Sleeps add up to what was asked for: one that was too long shortens the next ones."""

    def __init__(self) -> None:
        self._owed = 0.0

    def wait(self, seconds: float) -> None:
        self._owed += seconds
        if self._owed > 0:
            start = time.perf_counter()
            time.sleep(self._owed)
            self._owed -= time.perf_counter() - start


class _Waiting(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, weight, layer):
        ctx.layer = layer
        layer.clock.wait(layer.forward_seconds)
        return values + 0.0

    @staticmethod
    def backward(ctx, gradient):
        layer = ctx.layer
        layer.clock.wait(layer.backward_seconds)
        # A tensor of its own, which autograd takes for the parameter's as it takes one that was computed.
        return gradient, layer.gradient.detach(), None


class _Layer(nn.Module):
    def __init__(
        self, gradient: torch.Tensor, clock: Clock, forward_seconds: float, backward_seconds: float
    ):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros_like(gradient))
        self.gradient, self.clock = gradient, clock
        self.forward_seconds, self.backward_seconds = forward_seconds, backward_seconds

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return _Waiting.apply(values, self.weight, self)


def make_model(
    numels: Sequence[int], backward: Sequence[float], forward_seconds: float, compute_seconds: float
) -> nn.Module:
    """The lists begin with the first layer. All times are scaled so that both passes take `compute_seconds`."""
    scale = compute_seconds / (forward_seconds + sum(backward))
    clock = Clock()
    generator = torch.Generator().manual_seed(1)
    gradients = torch.randn(sum(numels), generator=generator).mul_(1e-3).split(list(numels))
    share = forward_seconds * scale / len(numels)
    layers = [
        _Layer(gradient, clock, share, seconds * scale)
        for gradient, seconds in zip(gradients, backward, strict=True)
    ]
    return nn.Sequential(*layers)


def loss_of(model: nn.Module) -> torch.Tensor:
    return model(torch.zeros(1, requires_grad=True)).sum()
