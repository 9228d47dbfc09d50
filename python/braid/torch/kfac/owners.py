# SPDX-License-Identifier: Apache-2.0
"""Which rank inverts which factor, by rules that need no costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from braid.torch.kfac.factors import Factor


class Owners(NamedTuple):
    """By factor, the rank that inverts it, or None: every rank does, and nothing travels. `order`
    has the factors that an owner spreads, in the order in which all ranks do so."""

    of: Sequence[int | None]
    order: Sequence[int]


def everybody(count: int) -> Owners:
    return Owners([None] * count, [])


def round_robin(count: int, ranks: int) -> Owners:
    return Owners([place % ranks for place in range(count)], range(count))


def by_layer(factors: Sequence[Factor], ranks: int) -> Owners:
    """Both factors of a layer have one owner; layers go around."""
    layers = list(dict.fromkeys(each.layer.name for each in factors))
    place_of = {name: place for place, name in enumerate(layers)}
    return Owners([place_of[each.layer.name] % ranks for each in factors], range(len(factors)))


class FixedOwners:
    """Owners that stay."""

    def __init__(self, owners: Owners) -> None:
        self.now = owners
        self.placement: Any = None
        # The shortest time in which any rank has inverted a factor, by its name, where it is known.
        self.least_seconds: Mapping[str, float] = {}

    def note(self, place: int, seconds: float) -> None:
        """How long this rank took to invert a factor."""

    def prepare(self) -> None:
        """Before inverses are made. All ranks call it together."""
