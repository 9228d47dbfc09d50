# SPDX-License-Identifier: Apache-2.0
"""A model with the parameters of a trace, whose forward and backward pass are waited through.

Autograd and what hangs on it see an ordinary model: each layer has one parameter, the backward pass gives its gradient
when the trace says so, and then goes on to the layer before.
"""

import time
from collections.abc import Sequence

import torch
from torch import nn


# What comes between two layers and takes no longer is the interpreter's work: no network is waited for in it.
_BETWEEN_LAYERS_SECONDS = 2e-3


class Clock:
    """Layers that follow each other end when they would on a device that computes them one after the other: what the
    interpreter takes between them, and what a sleep was too long, does not add up."""

    def __init__(self) -> None:
        self._end = 0.0

    def wait(self, seconds: float) -> None:
        now = time.perf_counter()
        follows = now - self._end < _BETWEEN_LAYERS_SECONDS
        self._end = (self._end if follows else now) + seconds
        if self._end > now:
            time.sleep(self._end - now)


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


class _WaitingAlone(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, clock, seconds):
        ctx.clock, ctx.seconds = clock, seconds
        clock.wait(seconds)
        return values.view_as(values)

    @staticmethod
    def backward(ctx, gradient):
        ctx.clock.wait(ctx.seconds)
        return gradient, None, None


class Waiting(nn.Module):
    """Changes nothing, and waits in both passes."""

    def __init__(self, clock: Clock, seconds: float):
        super().__init__()
        self._clock, self._seconds = clock, seconds

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return _WaitingAlone.apply(values, self._clock, self._seconds)


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
