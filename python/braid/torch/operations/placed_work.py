# SPDX-License-Identifier: Apache-2.0
"""What a rank tells its daemon of placed work: items that one rank computes for all.

Only for those who look: `braidctl trace` shows the spans, `braidctl explain`, status and metrics
the load. Nothing waits for it, and what cannot be told is lost.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from statistics import median
from typing import Any, NamedTuple

from braid import BraidError, WorkItem, WorkLoad, WorkSpan

# What happens within so many nanoseconds is told together.
_TELL_EVERY_NS = 100_000_000
# A load is the median of so many updates.
_UPDATES_KEPT = 8
# What braid_work.h allows. If there are more spans, of many small updates, the latest are told.
_SPANS_MAX, _ITEMS_MAX = 4096, 1024
_NAME_BYTES_MAX, _WORK_BYTES_MAX = 255, 64


class _Span(NamedTuple):
    name: str
    owner: int | None
    begin_ns: int
    end_ns: int
    is_wait: bool


class _Update(NamedTuple):
    begin_ns: int
    seconds: Mapping[str, float]  # that this rank has computed, by item
    wait_seconds: float
    input_wait_seconds: float


class PlacedWork:
    """One work of this rank, such as the inverses of K-FAC. Without a job nobody is told.

    Any thread notes spans; the rest is the thread's that trains. Times are time.monotonic_ns().
    """

    def __init__(self, job: Any, work: str) -> None:
        if not 1 <= len(work.encode()) <= _WORK_BYTES_MAX:
            raise ValueError(f"the name of the work has 1 to {_WORK_BYTES_MAX} bytes, not {work!r}")
        self._job = job
        self._work = work
        self._spans: deque[_Span] = deque(maxlen=_SPANS_MAX)
        self._updates: deque[_Update] = deque(maxlen=_UPDATES_KEPT)
        self._count = 0
        self._told_ns = 0
        self.begin_update()

    def computed(self, name: str, owner: int | None, begin_ns: int) -> float:
        """This rank has computed an item from then until now; returns the seconds. `owner` of None:
        every rank computes it."""
        end_ns = time.monotonic_ns()
        seconds = (end_ns - begin_ns) * 1e-9
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds
        self._spans.append(_Span(name, owner, begin_ns, end_ns, False))
        return seconds

    def waited(self, name: str, owner: int | None, begin_ns: int) -> None:
        """It has waited for what the owner computes."""
        end_ns = time.monotonic_ns()
        self._wait_seconds += (end_ns - begin_ns) * 1e-9
        self._spans.append(_Span(name, owner, begin_ns, end_ns, True))

    def waited_for_input(self, begin_ns: int) -> None:
        """It has waited for what an item is computed of."""
        self._input_wait_seconds += (time.monotonic_ns() - begin_ns) * 1e-9

    def begin_update(self) -> None:
        self._begin_ns = time.monotonic_ns()
        self._seconds: dict[str, float] = {}
        self._wait_seconds = self._input_wait_seconds = 0.0

    def end_update(
        self, placement: Any = None, rank: int = 0, least_seconds: Mapping[str, float] | None = None
    ) -> None:
        """All items were computed once since begin_update(), and are told when it is time.

        `placement` is one of braid.place() at costs in seconds. `least_seconds` are the shortest
        times, by item, in which any rank has computed them.
        """
        self._count += 1
        self._updates.append(
            _Update(self._begin_ns, self._seconds, self._wait_seconds, self._input_wait_seconds)
        )
        if self._is_time():
            self._tell(self._load(placement, rank), least_seconds or {})

    def tell_spans(self) -> None:
        """For what has no load: tells the spans when it is time."""
        self._seconds = {}
        if self._is_time():
            self._tell(None, {})

    def _is_time(self) -> bool:
        return time.monotonic_ns() - self._told_ns >= _TELL_EVERY_NS

    def _load(self, placement: Any, rank: int) -> WorkLoad:
        begins = [update.begin_ns for update in self._updates]
        intervals = [(after - before) * 1e-9 for before, after in zip(begins, begins[1:])]
        return WorkLoad(
            updates=self._count,
            interval_seconds=median(intervals) if intervals else 0.0,
            seconds=sum(map(self._usual_seconds, self._seconds)),
            wait_seconds=median(update.wait_seconds for update in self._updates),
            input_wait_seconds=median(update.input_wait_seconds for update in self._updates),
            planned_seconds=placement.loads[rank] if placement is not None else 0.0,
            makespan_seconds=placement.makespan_seconds if placement is not None else 0.0,
            bound_seconds=placement.bound_seconds if placement is not None else 0.0,
        )

    def _usual_seconds(self, name: str) -> float:
        return median(each.seconds[name] for each in self._updates if name in each.seconds)

    def _tell(self, load: WorkLoad | None, least_seconds: Mapping[str, float]) -> None:
        self._told_ns = time.monotonic_ns()
        spans, self._spans = self._spans, deque(maxlen=_SPANS_MAX)
        if self._job is None or not (spans or load):
            return
        items: dict[str, WorkItem] = {}
        if load is not None:
            for name in self._seconds:
                usual, least = self._usual_seconds(name), least_seconds.get(name, 0.0)
                items[name] = WorkItem(_as_told(name), None, usual, least)
        for span in spans:
            item = items.get(span.name, WorkItem(_as_told(span.name), None))
            items[span.name] = item._replace(owner=span.owner)
        if len(items) > _ITEMS_MAX:
            costliest = sorted(items, key=lambda name: items[name].seconds, reverse=True)
            items = {name: items[name] for name in costliest[:_ITEMS_MAX]}
        places = {name: place for place, name in enumerate(items)}
        told = [
            WorkSpan(places[span.name], span.begin_ns, span.end_ns, span.is_wait)
            for span in spans if span.name in places
        ]  # fmt: skip
        try:
            self._job.tell_work(self._work, list(items.values()), told, load)
        except BraidError:
            pass  # The job has ended: the next wait for one of its operations says why.


def _as_told(name: str) -> str:
    """The end of a name says more than its beginning."""
    return name.encode(errors="replace")[-_NAME_BYTES_MAX:].decode(errors="ignore")
