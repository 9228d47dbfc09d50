# SPDX-License-Identifier: Apache-2.0
"""Placed work that the daemon is told of, for those who look: braid_work.h."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

from braid import _abi
from braid._arguments import as_number, as_text


class WorkItem(NamedTuple):
    """An item of placed work. `owner` is the rank that computes it; None: each rank does. `seconds`
    is what this rank needs for it, 0 if others compute it; `least_seconds` the shortest that any
    rank has needed, 0 if that is not known."""

    name: str
    owner: int | None
    seconds: float = 0.0
    least_seconds: float = 0.0


class WorkSpan(NamedTuple):
    """When this rank computed an item, or waited for its owner's result: time.monotonic_ns().
    `item` is its place among the items that are told with it."""

    item: int
    begin_ns: int
    end_ns: int
    is_wait: bool = False


class WorkLoad(NamedTuple):
    """This rank's part of an update, which computes all items once: seconds, as the latest updates
    took them. 0: not known. `interval_seconds` is from the begin of an update to the next one's;
    the last three are the latest placement's."""

    updates: int
    interval_seconds: float
    seconds: float
    wait_seconds: float = 0.0
    input_wait_seconds: float = 0.0
    planned_seconds: float = 0.0
    makespan_seconds: float = 0.0
    bound_seconds: float = 0.0


class TellingMixin:
    """The part of Job that tells the daemon what is seen in its timeline, metrics and explanations."""

    _library: Any
    _open: Any
    _check: Any

    def tell_work(
        self,
        work: str,
        items: Sequence[WorkItem],
        spans: Sequence[WorkSpan] = (),
        load: WorkLoad | None = None,
    ) -> None:
        """Tells of placed work: at most 1024 items and 4096 spans. Never blocks. What cannot be told
        now is lost. Tell several updates together if there are more than ten in a second."""
        told = _abi.Work(
            struct_size=ctypes.sizeof(_abi.Work),
            name=as_text("the work's name", work),
            items=(_abi.WorkItem * len(items))(*map(_as_given, items)),
            item_count=len(items),
            spans=(_abi.WorkSpan * len(spans))(
                *((_SPAN_BYTES, begin, end, item, is_wait) for item, begin, end, is_wait in spans)
            ),
            span_count=len(spans),
        )
        for name, value in load._asdict().items() if load is not None else ():
            setattr(told, name, value)
        self._check(self._library.braid_tell_work(self._open(), ctypes.byref(told)))


_ITEM_BYTES = ctypes.sizeof(_abi.WorkItem)
_SPAN_BYTES = ctypes.sizeof(_abi.WorkSpan)


def _as_given(item: WorkItem) -> tuple[Any, ...]:
    owner = _abi.EVERYBODY if item.owner is None else as_number("an item's owner", item.owner, 32)
    return _ITEM_BYTES, as_text("an item's name", item.name), owner, item.seconds, item.least_seconds
