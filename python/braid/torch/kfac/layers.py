# SPDX-License-Identifier: Apache-2.0
"""The layers of a model that K-FAC preconditions: what their inputs and gradients are as matrices.

Factors are made as kfac-pytorch makes them (J. G. Pauloski et al., "KAISA: An Adaptive Second-Order
Optimizer Framework for Deep Neural Networks", SC 2021; github.com/gpauloski/kfac-pytorch): a bias
counts as an input of ones; inputs and gradients of a convolution are divided by the number of its
positions (Grosse and Martens, "A Kronecker-factored approximate Fisher matrix for convolution
layers", ICML 2016).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F

_log = logging.getLogger("braid")


class Rows(NamedTuple):
    """Vectors whose second moment is a factor. `scale` times the sum of their outer products is
    that moment."""

    values: torch.Tensor
    scale: float


class Layer:
    """A module with a weight and perhaps a bias. Its gradient is a matrix: a row for each output,
    and a column for each input of an output; the bias is the last column."""

    def __init__(self, name: str, module: torch.nn.Module) -> None:
        self.name = name
        self.module = module
        self.has_bias = getattr(module, "bias", None) is not None
        weight = module.weight
        self.outputs = weight.shape[0]
        self.inputs = weight[0].numel() + int(self.has_bias)

    @property
    def dtype(self) -> torch.dtype:
        """In which factors are made and inverted."""
        return torch.float64 if self.module.weight.dtype == torch.float64 else torch.float32

    def input_rows(self, inputs: torch.Tensor) -> Rows:
        """Without the ones of the bias."""
        raise NotImplementedError

    def gradient_rows(self, gradient: torch.Tensor) -> Rows:
        """Made of the gradient of the layer's output."""
        raise NotImplementedError

    def has_gradient(self) -> bool:
        return all(parameter.grad is not None for parameter in self._parameters())

    def gradient(self) -> torch.Tensor:
        """As a matrix, in `dtype`."""
        weight = self.module.weight.grad.detach().reshape(self.outputs, -1)
        if not self.has_bias:
            return weight.to(self.dtype)
        return torch.cat([weight, self.module.bias.grad.detach()[:, None]], 1).to(self.dtype)

    def set_gradient(self, matrix: torch.Tensor) -> None:
        """Writes into the gradients in place: a DistributedDataParallel may have views of them."""
        weight = self.module.weight.grad.detach()
        columns = matrix.shape[1] - int(self.has_bias)
        weight.copy_(matrix[:, :columns].reshape(weight.shape))
        if self.has_bias:
            self.module.bias.grad.detach().copy_(matrix[:, -1])

    def _parameters(self) -> list[torch.Tensor]:
        return [self.module.weight, self.module.bias] if self.has_bias else [self.module.weight]


class LinearLayer(Layer):
    def input_rows(self, inputs: torch.Tensor) -> Rows:
        rows = inputs.reshape(-1, inputs.shape[-1])
        return Rows(rows, 1 / max(1, rows.shape[0]))

    gradient_rows = input_rows


class Conv2dLayer(Layer):
    def input_rows(self, inputs: torch.Tensor) -> Rows:
        module = self.module
        images = inputs if inputs.dim() == 4 else inputs[None]
        mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
        patches = F.unfold(
            F.pad(images, _padding_of(module), mode),
            module.kernel_size, dilation=module.dilation, stride=module.stride,
        )  # fmt: skip
        return self._rows(patches)

    def gradient_rows(self, gradient: torch.Tensor) -> Rows:
        return self._rows((gradient if gradient.dim() == 4 else gradient[None]).flatten(2))

    def _rows(self, columns: torch.Tensor) -> Rows:
        """`columns` are images, each with a vector for each position."""
        positions = columns.shape[2]
        rows = columns.transpose(1, 2).reshape(-1, columns.shape[1])
        return Rows(rows, 1 / max(1, rows.shape[0] * positions**2))


def layers_of(model: torch.nn.Module, skip_layers: Iterable[str]) -> list[Layer]:
    """In the model's order. `skip_layers` are regular expressions, which are searched for in the
    names of modules and of their classes."""
    skipped = [re.compile(pattern) for pattern in skip_layers]
    found: list[Layer] = []
    for name, module in model.named_modules():
        if any(each.search(name) or each.search(type(module).__name__) for each in skipped):
            continue
        layer = _layer_of(name, module)
        if layer is not None:
            found.append(layer)
    return _without_shared(found)


def _layer_of(name: str, module: torch.nn.Module) -> Layer | None:
    if not isinstance(module, (torch.nn.Linear, torch.nn.Conv2d)):
        return None
    own = list(module.parameters(recurse=False))
    if not own or not all(each.requires_grad for each in own):
        return None
    if isinstance(module, torch.nn.Linear):
        return LinearLayer(name, module)
    if module.groups != 1:
        _log.info("K-FAC leaves out layer '%s': a convolution in %d groups", name, module.groups)
        return None
    return Conv2dLayer(name, module)


def _without_shared(layers: list[Layer]) -> list[Layer]:
    """One gradient of several modules belongs to none of them alone."""
    counts: dict[int, int] = {}
    for layer in layers:
        counts[id(layer.module.weight)] = counts.get(id(layer.module.weight), 0) + 1
    shared = [layer.name for layer in layers if counts[id(layer.module.weight)] > 1]
    if shared:
        _log.info("K-FAC leaves out layers that share a weight: %s", ", ".join(shared))
    return [layer for layer in layers if counts[id(layer.module.weight)] == 1]


def _padding_of(module: torch.nn.Conv2d) -> list[int]:
    """As torch.nn.functional.pad has it: before and after the columns, then the rows."""
    if module.padding == "valid":
        return [0, 0, 0, 0]
    if module.padding == "same":
        padding = []
        for kernel, dilation in zip(module.kernel_size, module.dilation):
            both = dilation * (kernel - 1)
            padding = [both // 2, both - both // 2, *padding]
        return padding
    rows, columns = module.padding
    return [columns, columns, rows, rows]
