# SPDX-License-Identifier: Apache-2.0
"""What a model's planned tensors are made of: neighbouring gradients, as few as pay for a call.

A bucket of DDP has gradients that are ready together. Neighbours with one codec make up one tensor
until it is large enough. A gradient that travels as two matrices is a tensor of its own. The
gradients of a tensor may lie apart in the bucket; in the arena they lie one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import NamedTuple

import torch

from braid.repeated import RepeatedDeviceOperation, RepeatedOperation
from braid.torch.ddp.power_sgd import LowRank, Shape
from braid.torch.planned.tensors import Form


class Gradient(NamedTuple):
    """One gradient to be: the parameter that it belongs to, its name on all ranks, its codec.

    With a shape it travels as two matrices, both of float32 (see power_sgd.py).
    """

    name: str
    parameter: torch.Tensor
    dtype: torch.dtype
    codec: str = ""
    shape: Shape | None = None


class Member(NamedTuple):
    """One tensor to be, of gradients that have one dtype, one codec and no shape, or of one."""

    gradients: tuple[Gradient, ...]

    @property
    def name(self) -> str:
        first, more = self.gradients[0].name, len(self.gradients) - 1
        return f"{first} and {more} more" if more else first

    @property
    def form(self) -> Form:
        first = self.gradients[0]
        return Form(self.name, first.dtype, self.travels, first.codec)

    @property
    def shape(self) -> Shape | None:
        return self.gradients[0].shape

    @property
    def travels(self) -> int:
        """Elements in the arena: those of the gradients, or of a P."""
        if self.shape is not None:
            return self.shape.rows * self.shape.rank
        return sum(gradient.parameter.numel() for gradient in self.gradients)


def members_of(bucket: Sequence[Gradient], bytes_min: int) -> list[Member]:
    """The tensors of one bucket, in the order in which DDP has its gradients."""
    members: list[Member] = []
    unfinished: dict[str, list[Gradient]] = {}
    nbytes: dict[str, int] = {}
    for gradient in bucket:
        if gradient.shape is not None:
            members.append(Member((gradient,)))
            continue
        codec = gradient.codec
        unfinished.setdefault(codec, []).append(gradient)
        nbytes[codec] = nbytes.get(codec, 0) + gradient.parameter.numel() * gradient.dtype.itemsize
        if nbytes[codec] >= bytes_min:
            members.append(Member(tuple(unfinished.pop(codec))))
            del nbytes[codec]
    members.extend(Member(tuple(gradients)) for gradients in unfinished.values())
    return members


class PlannedTensor:
    """One planned tensor: where it or its P lies, its operation, its parameters.

    `view` is None where its gradients go straight from DDP's buckets on a GPU.
    """

    __slots__ = ("dtype", "low_rank", "nbytes", "numel", "operation", "parameters", "step",
                 "travels", "view")  # fmt: skip

    def __init__(
        self, member: Member, view: torch.Tensor | None,
        operation: RepeatedOperation | RepeatedDeviceOperation,
    ) -> None:  # fmt: skip
        self.dtype = member.form.dtype
        self.travels = member.travels
        # They are held here, which keeps their ids theirs.
        self.parameters = [gradient.parameter for gradient in member.gradients]
        self.numel = sum(parameter.numel() for parameter in self.parameters)
        self.nbytes = self.numel * self.dtype.itemsize
        self.view = view
        self.operation = operation
        self.low_rank: LowRank | None = None
        self.step = -1


class Piece(NamedTuple):
    """Gradients of a tensor that are neighbours in a bucket, too; all in bytes."""

    in_bucket: int
    in_tensor: int
    nbytes: int


class Part(NamedTuple):
    """A tensor of a bucket, and where its gradients lie there."""

    tensor: PlannedTensor
    pieces: list[Piece]


class Layout(NamedTuple):
    """How the parts of one bucket lie."""

    parameters: list[torch.Tensor]
    parts: list[Part]
    nbytes: int
    dtype: torch.dtype


class Layouts:
    """Which tensors the buckets of a model consist of. A bucket is looked through once."""

    def __init__(self, tensors: Sequence[PlannedTensor]) -> None:
        # By a parameter's id, its tensor and where its gradient lies there.
        self._places: dict[int, tuple[PlannedTensor, int]] = {}
        self._known: dict[int, Layout] = {}
        for tensor in tensors:
            offset = 0
            for parameter in tensor.parameters:
                self._places[id(parameter)] = tensor, offset
                offset += parameter.numel() * tensor.dtype.itemsize

    def of(self, parameters: list[torch.Tensor]) -> Layout | None:
        """None: a parameter is not of these tensors, or one of another bucket is missing."""
        known = self._known.get(id(parameters[0]))
        if (
            known is not None
            and len(known.parameters) == len(parameters)
            and all(map(is_, known.parameters, parameters))
        ):
            return known
        found = self._look(parameters)
        if found is not None:
            self._known[id(parameters[0])] = found
        return found

    def _look(self, parameters: list[torch.Tensor]) -> Layout | None:
        pieces: dict[PlannedTensor, list[Piece]] = {}
        end = 0
        for parameter in parameters:
            if id(parameter) not in self._places:
                return None
            tensor, offset = self._places[id(parameter)]
            nbytes = parameter.numel() * tensor.dtype.itemsize
            _add_piece(pieces.setdefault(tensor, []), Piece(end, offset, nbytes))
            end += nbytes
        parts = [Part(tensor, found) for tensor, found in pieces.items()]
        dtypes = {part.tensor.dtype for part in parts}
        whole = all(sum(p.nbytes for p in part.pieces) == part.tensor.nbytes for part in parts)
        if len(dtypes) != 1 or not whole or len({id(p) for p in parameters}) != len(parameters):
            return None
        return Layout(parameters, parts, end, dtypes.pop())


def _add_piece(pieces: list[Piece], piece: Piece) -> None:
    """Joined with the last one where it goes on in both."""
    if pieces:
        last = pieces[-1]
        ends = last.in_bucket + last.nbytes, last.in_tensor + last.nbytes
        if ends == (piece.in_bucket, piece.in_tensor):
            pieces[-1] = Piece(last.in_bucket, last.in_tensor, last.nbytes + piece.nbytes)
            return
    pieces.append(piece)
