# SPDX-License-Identifier: Apache-2.0
"""PowerSGD: a gradient travels as two thin matrices (Vogels et al., NeurIPS 2019, algorithm 1).

M is the gradient, seen as a matrix of n x m, plus what earlier steps have left over:

    P = M Q            n x r, summed over all ranks, its columns then made orthonormal
    Q = M^T P          m x r, averaged over all ranks
    result = P Q^T     and M - result is left over for the next step

So a step sends r (n + m) elements instead of n m, in two all-reduces, each of which is planned like
those of other gradients. Q is where the next step begins (warm start). The trainer multiplies, on
its own device; the daemon sees nothing but float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from braid import Job
from braid.torch.planned.tensors import Form, register

NAME = "powersgd"
_RANK_DEFAULT = 4
_RANK_MAX = 256
# A gradient of which less than half would be saved is sent as it is.
_SAVED_AT_LEAST = 2


class Shape(NamedTuple):
    """The shape of a gradient as a matrix, and of its two thin matrices."""

    rows: int
    columns: int
    rank: int


def rank_of(codec: str) -> int | None:
    """The r of "powersgd:rank=r", 4 where it is left out; None: that is another codec.

    ValueError says what is wrong.
    """
    name, colon, parameters = codec.partition(":")
    if name != NAME:
        return None
    if not colon:
        return _RANK_DEFAULT
    key, _, value = parameters.partition("=")
    if key != "rank":
        raise ValueError(f"'{codec}': {NAME} has the parameter rank, as in {NAME}:rank=4")
    if not (value.isascii() and value.isdecimal() and 1 <= int(value) <= _RANK_MAX):
        raise ValueError(f"'{codec}': rank is a whole number from 1 to {_RANK_MAX}, not '{value}'")
    return int(value)


def shape_of(parameter: torch.Tensor, rank: int) -> Shape | None:
    """Rows are the dimension that is outermost in memory. None: too little would be saved."""
    if parameter.dim() < 2 or parameter.numel() == 0:
        return None
    outermost = max(range(parameter.dim()), key=parameter.stride)
    rows = parameter.shape[outermost]
    columns = parameter.numel() // rows
    rank = min(rank, rows, columns)
    if parameter.numel() < _SAVED_AT_LEAST * rank * (rows + columns):
        return None
    return Shape(rows, columns, rank)


class LowRank:
    """One gradient's matrices on this rank, for one step at a time, in the order of the methods.

    Columns are made orthonormal on the CPU, which gives all ranks the same bits.

    A step in which a sum is not finite gives NaN on all ranks, as the plain sum would. Nothing is
    left over from it, and the next step begins with the Q of the step before.
    """

    def __init__(self, shape: Shape, device: torch.device, seed: int) -> None:
        """`seed` is the same on all ranks."""
        self.shape = shape
        generator = torch.Generator().manual_seed(seed)
        start = torch.randn(shape.columns, shape.rank, generator=generator)
        self._q = _orthonormal(start).to(device)
        self._p: torch.Tensor | None = None
        # What is left over; during a step, that and the gradient: M.
        self._matrix = torch.zeros(shape.rows, shape.columns, device=device)

    def project(self, gradient: torch.Tensor, p: torch.Tensor) -> None:
        """Takes this rank's gradient, and writes its P."""
        self._matrix.add_(gradient.view_as(self._matrix))
        p.view(self.shape.rows, self.shape.rank).copy_(self._matrix @ self._q)

    def project_back(self, p: torch.Tensor, factor: float, q: torch.Tensor) -> None:
        """Takes all ranks' P, their sum or any multiple, and writes this rank's Q, times `factor`."""
        summed = p.view(self.shape.rows, self.shape.rank).cpu()
        if not bool(summed.isfinite().all()):
            self._p = None
            q.zero_()
            return
        self._p = _orthonormal(summed).to(self._matrix.device)
        columns = (self._matrix.T @ self._p).mul_(factor)
        q.view(self.shape.columns, self.shape.rank).copy_(columns)

    def expand(self, q: torch.Tensor, gradient: torch.Tensor) -> None:
        """Takes the average of all Qs, and writes the average gradient."""
        result = gradient.view_as(self._matrix)
        q = q.view(self.shape.columns, self.shape.rank).cpu()
        if self._p is None or not bool(q.isfinite().all()):
            result.fill_(math.nan)
            self._matrix.zero_()
            return
        torch.matmul(self._p, q.to(result.device).T, out=result)
        self._matrix.sub_(result)
        self._q = _orthonormal(q).to(result.device)


class SecondSums:
    """The all-reduces of all Qs of a set, as planned tensors of their own.

    Each Q is submitted when its P has come, and no Q is waited for before the last one is there, for
    the daemon may merge them. The set's completion thread calls it.
    """

    def __init__(
        self, job: Job, operations_of: Callable[..., list[tuple[torch.Tensor, Any]]],
        names: Sequence[str], low_ranks: Sequence[LowRank],
    ) -> None:  # fmt: skip
        """`names` are the same on all ranks. `operations_of` is that of the gradients' way."""
        forms = [
            Form(name, torch.float32, low_rank.shape.columns * low_rank.shape.rank)
            for name, low_rank in zip(names, low_ranks)
        ]
        self.handles = register(job, forms)
        self._operations = dict(zip(low_ranks, operations_of(forms, self.handles)))

    def matrix_of(self, low_rank: LowRank) -> torch.Tensor:
        """Where this rank's Q lies, and, from a GPU, then the average."""
        return self._operations[low_rank][0]

    def write(self, low_rank: LowRank, p: torch.Tensor, factor: float) -> None:
        """Makes this rank's Q ready to be submitted, of all ranks' P."""
        low_rank.project_back(p, factor, self.matrix_of(low_rank))

    def write_nothing(self, low_rank: LowRank) -> None:
        """A Q that adds nothing: the other ranks wait for one even where this rank has failed."""
        self.matrix_of(low_rank).zero_()

    def submit(self, low_rank: LowRank, step: int) -> int:
        return self._operations[low_rank][1].submit(step)


def _orthonormal(columns: torch.Tensor) -> torch.Tensor:
    """As many orthonormal columns, which span at least what these span.

    Householder's way: also where columns depend on each other or are zero, what comes out is
    orthonormal. So a gradient that was zero once does not stay zero.
    """
    return torch.linalg.qr(columns).Q
