# SPDX-License-Identifier: Apache-2.0
"""The collectives of torch.distributed: what each is given, and what then holds."""

import dataclasses
from collections.abc import Callable

import torch
import torch.distributed as dist

from .cases import Case

ROOT = 0


@dataclasses.dataclass(frozen=True)
class Prepared:
    run: Callable[[], object]
    holds: Callable[[], bool]  # after one run
    settle: Callable[[], object] = lambda: None  # before further runs


def prepare(case: Case) -> Prepared:
    rank, size = dist.get_rank(), dist.get_world_size()
    return getattr(_Tensors(case, rank, size), case.collective)()


class _Tensors:
    """`whole` is of all ranks, `part` of one. Blocks are by rank.

    What is to be added up: rank r gives ones to block r and those behind it, and zeros to the others. The sum of
    block b is b + 1, which tells whose addends are missing and is exact in every dtype up to 256 ranks.
    """

    def __init__(self, case: Case, rank: int, size: int):
        self.rank, self.size = rank, size
        self.dtype = getattr(torch, case.dtype)
        self.count = case.elements(size)

    def all_reduce(self) -> Prepared:
        whole = self._addends()
        return Prepared(
            lambda: dist.all_reduce(whole),
            lambda: _hold(whole.chunk(self.size), range(1, self.size + 1)),
            whole.zero_,  # or its own results would grow beyond all bounds
        )

    def reduce_scatter(self) -> Prepared:
        addends, part = self._addends(), self._part()
        return Prepared(
            lambda: dist.reduce_scatter_tensor(part, addends),
            lambda: _hold([part], [self.rank + 1]),
        )

    def all_gather(self) -> Prepared:
        whole, part = self._whole(), self._part().fill_(self.rank + 1)
        return Prepared(
            lambda: dist.all_gather_into_tensor(whole, part),
            lambda: _hold(whole.chunk(self.size), range(1, self.size + 1)),
        )

    def broadcast(self) -> Prepared:
        whole = self._whole().fill_(self.rank + 1)
        return Prepared(lambda: dist.broadcast(whole, ROOT), lambda: _hold([whole], [ROOT + 1]))

    def all_to_all(self) -> Prepared:
        given, whole = self._blocks([self._name(self.rank, to) for to in range(self.size)]), self._whole()
        return Prepared(
            lambda: dist.all_to_all_single(whole, given),
            lambda: _hold(whole.chunk(self.size), [self._name(of, self.rank) for of in range(self.size)]),
        )

    def gather(self) -> Prepared:
        part = self._part().fill_(self.rank + 1)
        blocks = list(self._whole().chunk(self.size)) if self.rank == ROOT else None
        return Prepared(
            lambda: dist.gather(part, blocks, dst=ROOT),
            lambda: blocks is None or _hold(blocks, range(1, self.size + 1)),
        )

    def scatter(self) -> Prepared:
        part, blocks = self._part(), None
        if self.rank == ROOT:
            blocks = list(self._blocks(range(1, self.size + 1)).chunk(self.size))
        return Prepared(
            lambda: dist.scatter(part, blocks, src=ROOT),
            lambda: _hold([part], [self.rank + 1]),
        )

    def _whole(self) -> torch.Tensor:
        return torch.zeros(self.count, dtype=self.dtype)

    def _part(self) -> torch.Tensor:
        return torch.zeros(self.count // self.size, dtype=self.dtype)

    def _addends(self) -> torch.Tensor:
        return self._blocks([float(block >= self.rank) for block in range(self.size)])

    def _blocks(self, values) -> torch.Tensor:
        whole = self._whole()
        for block, value in zip(whole.chunk(self.size), values, strict=True):
            block.fill_(value)
        return whole

    def _name(self, source: int, to: int) -> int:
        return source * self.size + to + 1


def _hold(blocks, values) -> bool:
    """Each block that value, rounded as the dtype has it."""
    return all(
        bool((block == torch.tensor(value, dtype=block.dtype)).all())
        for block, value in zip(blocks, values, strict=True)
    )
