# SPDX-License-Identifier: Apache-2.0
"""The inverses of a model's factors: made by their owners, spread as soon as each is there."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from braid.torch.kfac.factors import Factor
from braid.torch.kfac.failures import Failures
from braid.torch.kfac.inverses import InversionError
from braid.torch.kfac.owners import FixedOwners
from braid.torch.operations import devices
from braid.torch.operations.placed_work import PlacedWork

# The last element of what is spread: whether the rest is an inverse.
_GOOD, _FAILED, _NOT_YET = 1.0, 0.0, -1.0
# What broadcasts may be on their way at once, at least one.
_IN_FLIGHT_BYTES_MAX = 256 << 20


class _Spread(NamedTuple):
    """A broadcast on its way."""

    place: int
    vector: torch.Tensor
    work: Any


class Inverses:
    """The last good inverse of each factor, the same on all ranks. The thread that trains uses it."""

    def __init__(
        self, method: Any, factors: Sequence[Factor], owners: FixedOwners, group: Any,
        failures: Failures,
    ) -> None:  # fmt: skip
        """`method` is one of inverses.py. `group` of None: there is one rank."""
        self._rank = 0 if group is None else group.rank()
        self._work = PlacedWork(None if group is None else group.engine.job, "inverses")
        self._method = method
        self._factors = factors
        self._owners = owners
        self._group = group
        self._failures = failures
        self._good: dict[int, Any] = {}
        self._reasons: dict[int, str] = {}  # of this rank's failures in this update, by place

    def of(self, factor: Factor) -> Any:
        """None: there is none yet."""
        return self._good.get(id(factor))

    def update(self, step: int, damping: float, is_there: Callable[[Factor, bool], bool]) -> None:
        """All ranks call it together. `is_there(factor, is_wanted)` says whether a factor has ever
        been made; where it is wanted, the factor is what it shall be when that returns."""
        self._owners.prepare()
        self._work.begin_update()
        is_there = self._noting_waits(is_there)
        of, order = self._owners.now
        on_their_way: deque[_Spread] = deque()
        nbytes = 0
        for place in order:
            is_own = of[place] == self._group.rank()
            if not is_there(self._factors[place], is_own):
                continue
            vector = self._made(place, damping) if is_own else self._vector(self._factors[place])
            while on_their_way and nbytes + vector.nbytes > _IN_FLIGHT_BYTES_MAX:
                nbytes -= self._take(on_their_way.popleft(), step)
            work = self._group.broadcast([vector], root=of[place])
            on_their_way.append(_Spread(place, vector, work))
            nbytes += vector.nbytes
        for place, owner in enumerate(of):
            if owner is None and is_there(self._factors[place], True):
                self._adopt(place, step, self._made(place, damping))
        while on_their_way:
            self._take(on_their_way.popleft(), step)
        self._work.end_update(self._owners.placement, self._rank, self._owners.least_seconds)

    def _noting_waits(
        self, is_there: Callable[[Factor, bool], bool]
    ) -> Callable[[Factor, bool], bool]:
        def noting(factor: Factor, is_wanted: bool) -> bool:
            begin_ns = time.monotonic_ns()
            answer = is_there(factor, is_wanted)
            if is_wanted:
                self._work.waited_for_input(begin_ns)
            return answer

        return noting

    def _take(self, spread: _Spread, step: int) -> int:
        begin_ns = time.monotonic_ns()
        spread.work.wait()
        spread.vector[-1].item()  # On a GPU only this waits.
        owner = self._owners.now.of[spread.place]
        if owner != self._rank:
            self._work.waited(self._factors[spread.place].name, owner, begin_ns)
        self._adopt(spread.place, step, spread.vector)
        return spread.vector.nbytes

    def _vector(self, factor: Factor) -> torch.Tensor:
        weight = factor.layer.module.weight
        count = self._method.elements(factor.size) + 1
        return devices.cuda.vector(count, factor.dtype, devices.cuda.device_of(weight))

    def _made(self, place: int, damping: float) -> torch.Tensor:
        """What this rank has of an inverse, as it is spread."""
        factor = self._factors[place]
        vector = self._vector(factor)
        if factor.average is None:  # No rank but the owner knows that.
            vector.zero_()
            vector[-1] = _NOT_YET
            return vector
        begin_ns = time.monotonic_ns()
        try:
            self._write(factor, damping, vector)
            vector[-1] = _GOOD
        except InversionError as error:
            vector.zero_()
            vector[-1] = _FAILED
            self._reasons[place] = str(error)
        owner = self._owners.now.of[place]
        self._owners.note(place, self._work.computed(factor.name, owner, begin_ns))
        return vector

    def _write(self, factor: Factor, damping: float, into: torch.Tensor) -> None:
        matrix = factor.matrix()
        if not _is_finite(matrix):
            raise InversionError("it has values that are not finite")
        self._method.invert(matrix, damping, into[:-1])
        if not _is_finite(into[:-1]):
            raise InversionError("its inverse has values that are not finite")

    def _adopt(self, place: int, step: int, vector: torch.Tensor) -> None:
        factor = self._factors[place]
        mark = vector[-1].item()
        if mark == _GOOD:
            self._good[id(factor)] = self._method.read(vector[:-1], factor.size)
        elif mark == _FAILED:
            reason = self._reasons.pop(place, f"rank {self._owners.now.of[place]} has failed to make it")
            has_good = self.of(factor) is not None
            instead = "the last good one is used" if has_good else "its layer is not preconditioned"
            self._failures.note(factor.name, step, f"no inverse: {reason}; {instead}")


def _is_finite(values: torch.Tensor) -> bool:
    return math.isfinite(values.sum().item())
