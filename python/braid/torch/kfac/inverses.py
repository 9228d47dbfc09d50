# SPDX-License-Identifier: Apache-2.0
"""What is made of a factor, and how a gradient is preconditioned with it.

The inverse of the Kronecker product of A and G, with damping, is applied to a layer's gradient in
one of two ways. Both are kfac-pytorch's.

- "eigen": with eigenvalues a and g, and eigenvectors in the columns of P and Q, the gradient W
  becomes Q [(Qᵀ W P) / (g aᵀ + damping)] Pᵀ.
- "inverse": W becomes (G + damping)⁻¹ W (A + damping)⁻¹.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from braid.torch.kfac.triangles import pack, packed_elements, unpack


class InversionError(Exception):
    """A factor has no inverse; the text says why."""


class Eigen(NamedTuple):
    values: torch.Tensor
    vectors: torch.Tensor


class EigenMethod:
    """Eigendecompositions. As a vector: the eigenvalues, then the eigenvectors by rows."""

    name = "eigen"

    def elements(self, size: int) -> int:
        return size + size * size

    def invert(self, matrix: torch.Tensor, damping: float, into: torch.Tensor) -> None:
        """`damping` comes later, to the products of eigenvalues. Negative eigenvalues are rounding
        errors, and count as 0."""
        try:
            values, vectors = torch.linalg.eigh(matrix)
        except torch.linalg.LinAlgError as error:
            raise InversionError("its eigenvalues were not found") from error
        size = matrix.shape[0]
        torch.clamp(values, min=0, out=into[:size])
        into[size:].view(size, size).copy_(vectors)

    def read(self, vector: torch.Tensor, size: int) -> Eigen:
        return Eigen(vector[:size], vector[size:].view(size, size))

    def precondition(
        self, gradient: torch.Tensor, a: Eigen, g: Eigen, damping: float
    ) -> torch.Tensor:
        inner = g.vectors.t() @ gradient @ a.vectors
        inner.div_(torch.outer(g.values, a.values).add_(damping))
        return g.vectors @ inner @ a.vectors.t()


class InverseMethod:
    """Inverses, by Cholesky's decomposition. They are symmetric, and travel as triangles."""

    name = "inverse"

    def elements(self, size: int) -> int:
        return packed_elements(size)

    def invert(self, matrix: torch.Tensor, damping: float, into: torch.Tensor) -> None:
        matrix.diagonal().add_(damping)
        lower, info = torch.linalg.cholesky_ex(matrix)
        if info.item() != 0:
            raise InversionError("it is not positive definite")
        pack(torch.cholesky_inverse(lower), into)

    def read(self, vector: torch.Tensor, size: int) -> torch.Tensor:
        return unpack(vector, size)

    def precondition(
        self, gradient: torch.Tensor, a: torch.Tensor, g: torch.Tensor, damping: float
    ) -> torch.Tensor:
        return g @ gradient @ a


METHODS: dict[str, Any] = {each.name: each for each in (EigenMethod, InverseMethod)}
