# SPDX-License-Identifier: Apache-2.0
"""Which rank computes which piece of a step's work that does not depend on the batch. See docs/second-order.md."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from braid import _abi
from braid._arguments import as_number, as_text
from braid._library import library
from braid.errors import InvalidArgumentError, error_of

_RANKS_MAX = 65536


@dataclass(frozen=True)
class PlacedItem:
    """Work whose result all ranks need, such as a factor's inverse.

    `shape` is the result's, `cost` the seconds that it takes on any rank. `bytes` travel to the other ranks.
    """

    id: str
    shape: Sequence[int]
    cost: float
    bytes: int


@dataclass(frozen=True)
class Link:
    """What all ranks share: it spreads one result at a time, in startup_seconds + bytes * seconds_per_byte."""

    startup_seconds: float
    seconds_per_byte: float


@dataclass(frozen=True)
class Placement:
    """A rank first computes the items that it owns, in the order of `order`, then those of everybody."""

    owners: list[int | None]  # a rank for each item; None: everybody computes it
    order: list[int]  # the places in `items` of those with an owner, as their results are spread
    loads: list[float]  # seconds that each rank computes
    makespan_seconds: float  # when the last computation and the last spreading end
    bound_seconds: float  # no placement has a smaller makespan
    is_optimal: bool  # no placement is better


def place(items: Sequence[PlacedItem], ranks: int, rule: str = "best", link: Link | None = None) -> Placement:
    """Where each item goes. Every rank computes it for itself: the same input gives the same placement.

    Rules: "best", which is never worse than the others but "exact"; "exact", which searches longer; and those of
    papers: "lpt", "lbp", "lbp:d", "lbp:d2", "lbp:t", "round-robin", "block", "megatron", "kaisa:F". Without a link
    spreading takes no time. InvalidArgumentError names the item.
    """
    given = [_as_given(item, index) for index, item in enumerate(items)]
    count = as_number("ranks", ranks, 32)
    called = library()
    options = _abi.PlaceOptions(
        struct_size=ctypes.sizeof(_abi.PlaceOptions),
        ranks=count,
        rule=as_text("rule", rule),
        startup_seconds=0 if link is None else _as_seconds("link.startup_seconds", link.startup_seconds),
        seconds_per_byte=0 if link is None else _as_seconds("link.seconds_per_byte", link.seconds_per_byte),
    )
    owners = (ctypes.c_uint32 * len(given))()
    order = (ctypes.c_uint32 * len(given))()
    loads = (ctypes.c_double * min(count, _RANKS_MAX))()  # the library refuses more
    told = _abi.PlacementNumbers(struct_size=ctypes.sizeof(_abi.PlacementNumbers))
    array = (_abi.PlaceItem * len(given))(*given)
    code = called.braid_place(
        ctypes.byref(options), array, len(given), owners, order, loads, ctypes.byref(told)
    )
    if code:
        raise error_of(code, called.braid_error_message().decode(errors="replace"))
    return Placement(
        owners=[None if owner == _abi.EVERYBODY else owner for owner in owners],
        order=order[: told.order_count],
        loads=list(loads),
        makespan_seconds=told.makespan_seconds,
        bound_seconds=told.bound_seconds,
        is_optimal=bool(told.is_optimal),
    )


def _as_given(item: PlacedItem, index: int) -> _abi.PlaceItem:
    name = f"item {index} {item.id!r}"
    shape = [as_number(f"{name}: a dimension of its shape", size, 64) for size in item.shape]
    return _abi.PlaceItem(
        struct_size=ctypes.sizeof(_abi.PlaceItem),
        id=as_text(f"item {index}: its id", item.id),
        shape=(ctypes.c_uint64 * len(shape))(*shape),
        dimensions=len(shape),
        cost_seconds=_as_seconds(f"{name}: its cost", item.cost),
        bytes=as_number(f"{name}: its bytes", item.bytes, 64),
    )


def _as_seconds(what: str, value: Any) -> float:
    """The library says what is wrong with a number; this, what is none."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgumentError(f"{what} is {value!r}; right is a number from 0, such as 0.0015") from None
