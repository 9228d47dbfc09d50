# SPDX-License-Identifier: Apache-2.0
"""Which rank inverts which factor, at the costs that were measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed import ReduceOp

import braid
from braid.torch.group.process_group import BraidProcessGroup
from braid.torch.kfac.factors import Factor
from braid.torch.kfac.owners import FixedOwners, Owners, round_robin

# Inverses are placed anew before their second update, the third, the fifth, the ninth …, and from
# then on before each one of so many.
_UPDATES_BETWEEN_MAX = 64
# Sizes of the two broadcasts that the link is measured with.
_SMALL_BYTES, _LARGE_BYTES = 1 << 12, 1 << 20
_ROUNDS = 3


class PlacedOwners(FixedOwners):
    """Owners by braid.place(), at the costs that were measured. They go around until there are some.

    Ranks measure what they invert, and add up what they have measured: so all of them place at the
    same costs, and get the same owners.
    """

    def __init__(
        self, group: BraidProcessGroup, factors: Sequence[Factor], bytes_of: Sequence[int]
    ) -> None:
        super().__init__(round_robin(len(factors), group.size()))
        self._group = group
        self._factors = factors
        self._bytes = bytes_of
        self._updates = 0
        self._next_placement = 1
        self._link: Any = None
        self._forget()

    def note(self, place: int, seconds: float) -> None:
        self._seconds[place] += seconds
        self._counts[place] += 1

    def prepare(self) -> None:
        if self._updates == self._next_placement:
            self._next_placement += min(self._updates, _UPDATES_BETWEEN_MAX)
            self._place()
        self._updates += 1

    def _place(self) -> None:
        sums = torch.stack([self._seconds, self._counts])
        self._group.allreduce([sums], ReduceOp.SUM).wait()
        self._forget()
        costs = (sums[0] / sums[1].clamp(min=1)).tolist()
        self.least_seconds = {
            each.name: min(cost, self.least_seconds.get(each.name, cost))
            for each, cost in zip(self._factors, costs)
        }
        if self._link is None:
            self._link = _measured_link(self._group)
        self.placement = _placement(self._factors, costs, self._bytes, self._group.size(), self._link)
        self.now = Owners(self.placement.owners, self.placement.order)

    def _forget(self) -> None:
        self._seconds = torch.zeros(len(self._factors), dtype=torch.float64)
        self._counts = torch.zeros(len(self._factors), dtype=torch.float64)


def _placement(
    factors: Sequence[Factor], costs: Sequence[float], bytes_of: Sequence[int], ranks: int, link: Any
) -> Any:
    items = [
        braid.PlacedItem(each.name, (each.size, each.size), cost, nbytes)
        for each, cost, nbytes in zip(factors, costs, bytes_of)
    ]
    return braid.place(items, ranks, link=link)


def _measured_link(group: BraidProcessGroup) -> Any:
    """A broadcast's cost, as rank 0 has measured it."""
    small, large = (_broadcast_seconds(group, nbytes) for nbytes in (_SMALL_BYTES, _LARGE_BYTES))
    per_byte = max(0.0, large - small) / (_LARGE_BYTES - _SMALL_BYTES)
    link = torch.tensor([max(0.0, small - per_byte * _SMALL_BYTES), per_byte], dtype=torch.float64)
    group.broadcast([link], root=0).wait()
    return braid.Link(*link.tolist())


def _broadcast_seconds(group: BraidProcessGroup, nbytes: int) -> float:
    """From the last rank, so that rank 0 sees it arrive."""
    values = torch.zeros(nbytes, dtype=torch.uint8)
    best = float("inf")
    for _ in range(_ROUNDS):
        group.barrier().wait()
        begin = time.perf_counter()
        group.broadcast([values], root=group.size() - 1).wait()
        best = min(best, time.perf_counter() - begin)
    return best
