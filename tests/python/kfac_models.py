# SPDX-License-Identifier: Apache-2.0
"""Small models for K-FAC, their batches, and K-FAC by its definition: Kronecker products are formed."""

from __future__ import annotations

from typing import Any

import torch

ROWS = 12  # of a batch, which one to four ranks divide evenly


def make_model(dtype: torch.dtype = torch.float64) -> Any:
    """The same each time, also where ranks that are threads make it at once."""
    model = torch.nn.Sequential(
        torch.nn.Conv2d(2, 3, 3, stride=2, padding=1), torch.nn.Tanh(),
        torch.nn.Conv2d(3, 4, 2, bias=False), torch.nn.ReLU(inplace=True),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 5), torch.nn.ReLU(inplace=True),
        torch.nn.Linear(5, 2, bias=False),
    )  # fmt: skip
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            bound = parameter[0].numel() ** -0.5
            parameter.uniform_(-bound, bound, generator=generator)
    return model.to(dtype)


def batch(step: int, rank: int = 0, ranks: int = 1, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """A rank's part of a step's batch, for make_model()."""
    generator = torch.Generator().manual_seed(1000 + step)
    return torch.randn(ROWS, 2, 6, 6, generator=generator, dtype=torch.float64).to(dtype)[rank::ranks]


def differentiate(model: Any, inputs: torch.Tensor, share: float = 1.0) -> None:
    targets = inputs.flatten(1)[:, :2].sin()
    ((model(inputs) - targets).square().mean() * share).backward()


def descend(model: Any, lr: float = 0.1) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.sub_(parameter.grad, alpha=lr)


def gradients_of(model: Any) -> list[torch.Tensor]:
    return [parameter.grad.detach().clone() for parameter in model.parameters()]


def kfac_of(model: Any, group: Any = None, **options: Any) -> Any:
    from braid.torch.kfac import KFAC

    return KFAC(model, process_group=group, **options)


def train(
    model: Any, kfac: Any, steps: range, rank: int = 0, ranks: int = 1, passes: int = 1, forward: Any = None
) -> list[list[torch.Tensor]]:
    """The preconditioned gradients of each step, whose batch is made of so many passes through `forward`, or else
    through the model."""
    seen = []
    for step in steps:
        model.zero_grad()
        for number in range(passes):
            inputs = batch(step, rank * passes + number, ranks * passes, next(model.parameters()).dtype)
            differentiate(forward or model, inputs, 1 / passes)
        kfac.step()
        seen.append(gradients_of(model))
        descend(model)
    return seen


def trained_by_one(steps: range, **options: Any) -> list[list[torch.Tensor]]:
    model = make_model()
    return train(model, kfac_of(model, **options), steps)


def far(mine: list[list[torch.Tensor]], right: list[list[torch.Tensor]]) -> float:
    """The largest difference, as a part of each gradient's largest element."""
    pairs = [pair for one, other in zip(mine, right) for pair in zip(one, other)]
    assert len(mine) == len(right) and pairs
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in pairs)


class Dense:
    """K-FAC of one layer by its definition, in float64, of what hooks of the test have seen."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.a = self.g = None
        module.register_forward_hook(self._saw)

    def _saw(self, module: Any, inputs: Any, output: torch.Tensor) -> None:
        self.inputs = inputs[0].detach().double()
        output.register_hook(self._saw_gradient)

    def _saw_gradient(self, gradient: torch.Tensor) -> None:
        self.gradient = gradient.detach().double()

    def take(self, decay: float) -> None:
        """The running averages with this step's factors."""
        for name, new in (("a", self._moment(self._inputs())), ("g", self._moment(self._gradients()))):
            old = getattr(self, name)
            old = torch.eye(new.shape[0], dtype=new.dtype) if old is None else old
            setattr(self, name, decay * old + (1 - decay) * new)

    def preconditioned(self, method: str, damping: float) -> torch.Tensor:
        """The gradient as a matrix, the bias in the last column."""
        parts = [parameter.grad.double().flatten(1) if parameter.dim() > 1 else parameter.grad.double()[:, None]
                 for parameter in self.module.parameters()]  # fmt: skip
        matrix = torch.cat(parts, 1)
        eye = lambda each: damping * torch.eye(each.shape[0], dtype=each.dtype)  # noqa: E731
        if method == "eigen":
            product = torch.kron(self.g, self.a)
            product = product + eye(product)
        else:
            product = torch.kron(self.g + eye(self.g), self.a + eye(self.a))
        return torch.linalg.solve(product, matrix.flatten()).view_as(matrix)

    def _moment(self, rows: list[torch.Tensor]) -> torch.Tensor:
        return sum(torch.outer(row, row) for row in rows) / len(rows)

    def _inputs(self) -> list[torch.Tensor]:
        one = torch.ones(1, dtype=torch.float64)
        ones = one if self.module.bias is not None else one[:0]
        if isinstance(self.module, torch.nn.Linear):
            return [torch.cat([row, ones]) for row in self.inputs.flatten(0, -2)]
        positions = self.gradient[0, 0].numel()
        return [torch.cat([patch.flatten(), ones]) / positions for patch in self._patches()]

    def _patches(self) -> list[torch.Tensor]:
        """One by one: a patch for each image and position."""
        (rows, columns), (high, wide) = self.module.padding, self.module.kernel_size
        (down, across), (far_down, far_across) = self.module.stride, self.module.dilation
        images, channels, height, width = self.inputs.shape
        padded = self.inputs.new_zeros(images, channels, height + 2 * rows, width + 2 * columns)
        padded[:, :, rows : rows + height, columns : columns + width] = self.inputs
        patches = []
        for image in padded:
            for y in range(self.gradient.shape[2]):
                for x in range(self.gradient.shape[3]):
                    top, left = y * down, x * across
                    patches.append(image[:, top : top + high * far_down : far_down,
                                         left : left + wide * far_across : far_across])  # fmt: skip
        return patches

    def _gradients(self) -> list[torch.Tensor]:
        if isinstance(self.module, torch.nn.Linear):
            return list(self.gradient.flatten(0, -2))
        positions = self.gradient[0, 0].numel()
        return list(self.gradient.permute(0, 2, 3, 1).flatten(0, 2) / positions)
