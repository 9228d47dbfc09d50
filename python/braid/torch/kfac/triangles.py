# SPDX-License-Identifier: Apache-2.0
"""Symmetric matrices as vectors of d(d + 1)/2 elements.

The format is "rectangular full packed" (Gustavson et al., "Rectangular Full Packed Format for
Cholesky's Algorithm", ACM TOMS 2010, and LAPACK's dpftrf). The lower triangle of a matrix is cut
into the triangle of its first half, the triangle of its second half, and the square below the
first. The two triangles make up one rectangle, which stands above the square. So a matrix is
packed and unpacked by a few copies of blocks. Copies by index would need 8 bytes for each element,
and a copy for each row would need d calls.
"""

from __future__ import annotations

import torch

_Parts = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def packed_elements(size: int) -> int:
    return size * (size + 1) // 2


def pack(matrix: torch.Tensor, into: torch.Tensor) -> None:
    """Writes the lower triangle of a square matrix to a vector; what is above it is not read."""
    size = matrix.shape[0]
    half = (size + 1) // 2
    top, first, second, below = _parts(into, size)
    top.zero_()
    first.copy_(matrix[:half, :half]).tril_()
    second.add_(matrix[half:, half:].tril().t())
    below.copy_(matrix[half:, :half])


def unpack(vector: torch.Tensor, size: int) -> torch.Tensor:
    """The whole matrix."""
    half = (size + 1) // 2
    _, first, second, below = _parts(vector, size)
    matrix = vector.new_empty(size, size)
    matrix[:half, :half] = first.tril() + first.tril(-1).t()
    matrix[half:, half:] = second.triu() + second.triu(1).t()
    matrix[half:, :half] = below
    matrix[:half, half:] = below.t()
    return matrix


def _parts(vector: torch.Tensor, size: int) -> _Parts:
    """Views of a packed vector: the rectangle of both triangles, where each of them lies, and the
    square below. The first triangle lies as in the matrix, the second one is transposed."""
    half = (size + 1) // 2
    rest = size - half
    rows = vector.view(-1, half)
    top, below = rows[: rows.shape[0] - rest], rows[rows.shape[0] - rest :]
    if size % 2 == 0:
        return top, top[1:], top[:half], below
    return top, top, top[:rest, 1:], below
