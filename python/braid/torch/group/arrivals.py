# SPDX-License-Identifier: Apache-2.0
"""Which ranks come to make a group, and which of them not through braid.

Braid may be switched on for some ranks only. The others then make a gloo group, and each side waits
for the other. Before a rank of gloo waits, it says in the group's store where it listens: that is
the one trace of a rank that will never come through braid. Other backends leave none, so ranks that
are late without one are named in a warning. A rank that fails on its way to the job, and so will not
come either, says why in the store.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from torch.distributed import DistBackendError, Store

_log = logging.getLogger("braid")
_LOOK_SECONDS = 1.0
_TELL_AFTER_SECONDS = 10.0
# A look asks the store about so many ranks; the next look goes on behind them.
_RANKS_PER_LOOK_MAX = 256
_RANKS_NAMED_MAX = 16
_REASON_CHARACTERS_MAX = 1000


class Arrivals:
    """The arrivals that one rank sees. Rank 0 watches all others, and they watch rank 0."""

    def __init__(
        self, store: Store, rank: int, size: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._rank = rank
        self._size = size
        self._clock = clock
        # A store may outlive a group: a script that destroys its group and makes it again finds what
        # it wrote before. Every rank comes as often as the others, so the count tells the times apart.
        self.number = store.add(_arrival(rank), 1)
        self._failure = _failure(self.number)
        self._began = self._looked = clock()
        self._next = 0
        self._has_told = False

    def look(self) -> None:
        """To be called again and again while the others are waited for.

        Raises DistBackendError when some of them cannot come any more.
        """
        now = self._clock()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        self._raise_failure()
        self._raise_if_twice()
        if by_gloo := self._by_gloo(self._watched()):
            first = range(min(self._size, _RANKS_PER_LOOK_MAX))
            raise DistBackendError(self._half_enabled({*by_gloo, *self._by_gloo(first)}))
        if not self._has_told and now - self._began >= _TELL_AFTER_SECONDS:
            self._has_told = True
            self._tell_late_ones()

    def look_for_double(self) -> None:
        """The same while the job is being made, for which the daemons name who is missing."""
        now = self._clock()
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            self._raise_failure()
            self._raise_if_twice()

    def give_up(self, reason: str) -> None:
        """Tells the others why this rank will not come. One rank's reason is enough."""
        if not self._store.check([self._failure]):
            self._store.set(self._failure, f"{self._rank}\n{printable(reason)}")

    def _raise_if_twice(self) -> None:
        """While one process waits, no other one may come with its rank."""
        count = int(self._store.add(_arrival(self._rank), 0))
        if count <= self.number:
            return
        reason = (
            f"{count - self.number + 1} processes say that they are rank {self._rank} of {self._size}: give "
            "each process a rank of its own (RANK)"
        )
        for number in range(self.number, min(count, self.number + _RANKS_PER_LOOK_MAX) + 1):
            self._store.set(_failure(number), f"{self._rank}\n{printable(reason)}")
        raise DistBackendError(f"braid: {reason}")

    def _raise_failure(self) -> None:
        if not self._store.check([self._failure]):
            return
        said = self._store.get(self._failure).decode(errors="replace")
        rank, _, reason = said.partition("\n")
        raise DistBackendError(
            f"braid: rank {printable(rank)} of {self._size} could not join the group's job, for which rank "
            f"{self._rank} waits. It says: {printable(reason)}"
        )

    def _watched(self) -> Iterable[int]:
        if self._rank != 0:
            return [0]
        count = min(_RANKS_PER_LOOK_MAX, self._size)
        first, self._next = self._next, (self._next + count) % self._size
        return [(first + place) % self._size for place in range(count)]

    def _came_by_gloo(self, rank: int) -> bool:
        if rank == self._rank or not self._store.check([_gloo_listener(rank)]):
            return False
        # A script may have had a gloo group here before: then this rank was in it, too.
        return not self._store.check([_gloo_listener(self._rank)]) and not self._has_arrived(rank)

    def _has_arrived(self, rank: int) -> bool:
        return int(self._store.add(_arrival(rank), 0)) >= self.number

    def _by_gloo(self, ranks: Iterable[int]) -> list[int]:
        return [rank for rank in ranks if self._came_by_gloo(rank)]

    def _half_enabled(self, others: Iterable[int]) -> str:
        return (
            f"braid: rank {self._rank} of {self._size} comes through braid, and {_ranks(sorted(others))} came "
            "through torch's gloo: they would wait for each other. Start all ranks alike: with "
            "braid-run, with BRAID_ENABLE=1, or with the backend 'braid'"
        )

    def _tell_late_ones(self) -> None:
        late = [
            rank for rank in range(min(self._size, _RANKS_PER_LOOK_MAX))
            if rank != self._rank and not self._has_arrived(rank)
        ]  # fmt: skip
        if late and (self._rank == 0 or 0 in late):
            _log.warning(
                "rank %d of %d has waited %d s for %s to come through braid. If they are running, braid "
                "is not switched on there (BRAID_ENABLE=1, braid-run or the backend 'braid')",
                self._rank, self._size, _TELL_AFTER_SECONDS,
                _ranks(late if self._rank == 0 else [0]),
            )  # fmt: skip


def printable(text: str) -> str:
    """What goes into the store, or comes from there, as a line of bounded length."""
    return "".join(c if c.isprintable() else " " for c in text[:_REASON_CHARACTERS_MAX])


def _arrival(rank: int) -> str:
    return f"braid/arrivals/{rank}"


def _failure(number: int) -> str:
    return f"braid/failure/{number}"


def _gloo_listener(rank: int) -> str:
    """The key under which gloo says where a rank listens."""
    return f"0/{rank}"


def _ranks(ranks: list[int]) -> str:
    names = ", ".join(map(str, ranks[:_RANKS_NAMED_MAX]))
    more = len(ranks) - _RANKS_NAMED_MAX
    return f"rank{'s' if len(ranks) > 1 else ''} {names}" + (f" and {more} more" if more > 0 else "")
