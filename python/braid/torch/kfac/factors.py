# SPDX-License-Identifier: Apache-2.0
"""Kronecker factors: second moments of a step, and their running averages."""

from __future__ import annotations

import torch

from braid.torch.kfac.layers import Layer, Rows
from braid.torch.kfac.triangles import pack, packed_elements, unpack


class Factor:
    """One factor of a layer: A, the second moment of its inputs, or G, that of the gradients of its
    output. A hook adds to it, in the thread that runs the model; all else is the thread's that
    trains. The two do not meet: step() comes after the backward pass.

    The running average is kept as a triangle.
    """

    def __init__(self, layer: Layer, kind: str) -> None:
        """`kind` is "A" or "G"."""
        self.layer = layer
        self.kind = kind
        self.name = f"{layer.name}.{kind}"
        self.size = layer.inputs if kind == "A" else layer.outputs
        self.elements = packed_elements(self.size)
        self.average: torch.Tensor | None = None
        # How often the layer was used since the last step(), and from the step before it to that.
        self.uses = 0
        self.expected_uses = 0
        # The sum of this step's moments; None: there was none, or it was taken.
        self.sum: torch.Tensor | None = None

    @property
    def dtype(self) -> torch.dtype:
        return self.layer.dtype

    @property
    def is_complete(self) -> bool:
        """Whether the layer was used as often as in the step before."""
        return self.uses == self.expected_uses

    @property
    def has_new(self) -> bool:
        return self.sum is not None

    def add(self, rows: Rows, scale: float = 1.0) -> None:
        """One use of the layer. Only the lower triangle is made where the layer has a bias."""
        values = rows.values.detach().to(self.dtype)
        scale *= rows.scale
        if self.sum is None:
            self.sum = values.new_zeros(self.size, self.size)
        columns = values.shape[1]
        inner = self.sum[:columns, :columns]
        inner.addmm_(values.t(), values, alpha=scale)
        if columns < self.size:  # The input of ones, which is the bias's.
            self.sum[-1, :-1].add_(values.sum(0), alpha=scale)
            self.sum[-1, -1].add_(values.shape[0] * scale)
        self.uses += 1

    def take_new(self, into: torch.Tensor) -> None:
        """Writes the mean over the uses so far to a vector. What follows belongs to no step."""
        pack(self.sum, into)
        if self.uses > 1:
            into.div_(self.uses)
        self.sum = None

    def take_vector(self) -> torch.Tensor:
        """The same as a new vector."""
        vector = self.sum.new_empty(self.elements)
        self.take_new(vector)
        return vector

    def end_step(self) -> None:
        self.expected_uses, self.uses, self.sum = self.uses, 0, None

    def update(self, new: torch.Tensor, decay: float, divisor: float = 1.0) -> None:
        """Takes `new` / `divisor` into the running average, which begins as the identity."""
        if self.average is None:
            self.load(torch.eye(self.size))
        new = new.to(self.average.device)
        self.average.mul_(decay).add_(new, alpha=(1 - decay) / divisor)

    def matrix(self) -> torch.Tensor:
        return unpack(self.average, self.size)

    def forget(self) -> None:
        """The next update begins anew."""
        self.average = None

    def load(self, matrix: torch.Tensor) -> None:
        device = self.layer.module.weight.device
        self.average = torch.empty(self.elements, dtype=self.dtype, device=device)
        pack(matrix.to(device, self.dtype), self.average)
