# SPDX-License-Identifier: Apache-2.0
"""Rounds of weights that the daemons update: one operation of each tensor, submitted and to be waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import torch

from braid import BraidError
from braid.torch.operations import devices
from braid.torch.operations.engine import Engine
from braid.torch.operations.failures import as_distributed
from braid.torch.planned.flight import Flight
from braid.torch.weights.weight import Submitted, Weight, is_plain, write_to_parameter

# What the daemons say of a rank that gave no reason: it knows of no error, and did fewer steps.
_LEFT_IN_ORDER = ("left the job, but", "left the job without")
_FEWER_STEPS = (
    "; all ranks must take the same number of optimizer steps: the rank that left has taken fewer, for "
    "example because its script left one out"
)

Use = Callable[[Weight, torch.Tensor], None]


class Round(Flight):
    """One operation of each tensor of a set, in flight. One thread at a time uses it.

    Every result is taken once, in any order, when all operations are submitted. After a failure
    each taking raises the first error, and waits for nothing.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        super().__init__(engine)
        self._tickets: dict[int, Submitted] = {}
        self._kept: list[Submitted] = []  # Until the next rounds.
        self._has_arrived = False
        self._is_open = True
        self.name = name

    def add(self, submitted: Submitted) -> None:
        self._tickets[id(submitted.weight.parameter)] = submitted

    def close(self) -> None:
        """All operations are submitted."""
        self._is_open = False

    @property
    def is_over(self) -> bool:
        return not self._is_open and not self._tickets

    def done(self) -> bool:
        """Whether all results are here, or an error is. Never blocks."""
        try:
            return self.error is not None or all(
                self.engine.job.test(each.ticket) for each in self._tickets.values()
            )
        except BraidError:
            return True

    @property
    def has_arrived(self) -> bool:
        """Whether wait() has seen all results: the next round may begin before they are taken."""
        return self.is_over or self._has_arrived

    def wait(self) -> None:
        """Waits for all results and takes none. Raises the round's error."""
        if self._has_arrived:
            return
        try:
            with self.engine.attended:
                for each in self._tickets.values():
                    self._wait(each.ticket)
        except Exception as cause:
            self.fail(cause)
        self._raise()
        self._has_arrived = True

    def take_of(self, parameter: torch.Tensor, use: Use | None) -> None:
        """Waits for one result, if it is still to be taken, hands it to `use` as a vector in the
        daemon's memory, and gives it back. A round that pushed has results of no elements."""
        if id(parameter) in self._tickets:
            self._take([parameter], use)

    def take_all(self, use: Use | None = None) -> None:
        """The same for all that are left, also after an error; raises the first one at the end."""
        self._take([each.weight.parameter for each in self._tickets.values()], use)

    def _take(self, parameters: Sequence[torch.Tensor], use: Use | None) -> None:
        if parameters:
            try:
                with self.engine.attended:
                    for parameter in parameters:
                        self._take_one(self._tickets.pop(id(parameter)), use)
            except Exception as cause:  # The process group is gone, and with it the tickets.
                self.fail(cause)
                self._tickets.clear()
            if not self._tickets:
                self.end_entry()
        self._raise()

    def _take_one(self, submitted: Submitted, use: Use | None) -> None:
        ticket, weight = submitted.ticket, submitted.weight
        data = weight.parameter.data
        if submitted.given is not None:
            result = submitted.result
            take = partial(use, weight, result) if use and result is not None else None
            self.take_on_device(ticket, weight.device, take)
            if devices.cuda.current_stream(weight.device) != submitted.stream:
                # The other stream may get its memory, and this one has only now begun with it.
                self._kept.append(submitted)
        elif use is write_to_parameter and self.error is None and is_plain(data):
            self.take_into(ticket, data.data_ptr(), data.nbytes)
        else:
            self.take(ticket, weight.view.dtype, use and partial(use, weight))

    def give_up(self, cause: Exception) -> None:
        """Could not be submitted as a whole: what was is given up, for it may never end."""
        self.fail(cause)
        self.close()
        for each in self._tickets.values():
            self.release(each.ticket, on_device=each.given is not None)
        self._tickets.clear()
        self.end_entry()

    def _wait(self, ticket: int) -> None:
        if self.error is None:
            super()._wait(ticket)

    def _told(self, cause: BraidError) -> Exception:
        left_in_order = any(words in str(cause) for words in _LEFT_IN_ORDER)
        return as_distributed(cause, after=_FEWER_STEPS if left_in_order else "")

    def _raise(self) -> None:
        if self.error is not None:
            # Told again and again, and each time from here.
            raise self.error.with_traceback(None)


class OpenRound:
    """A round that is being submitted, one tensor after the other, in any order. One thread at a
    time uses it, not always the same one.

    The ranks need not have the same order. Nothing may be waited for before close().
    """

    def __init__(self, round: Round, weights: Iterable[Weight], step: int) -> None:
        """`weights` are all of the set, in the order in which close() submits what is missing."""
        self._round = round
        self._step = step
        self._missing = {id(weight.parameter): weight for weight in weights}

    def missing(self, parameter: torch.Tensor) -> Weight | None:
        """What is still to be submitted of a parameter. None: nothing, or it is another set's."""
        return self._missing.get(id(parameter))

    def add(self, weight: Weight, prepare: Callable[[Weight], None]) -> None:
        """Submits one tensor with what `prepare` makes ready. An error gives up the whole round."""
        try:
            prepare(weight)
            self._round.add(weight.submit(self._step))
        except BraidError as cause:
            error = as_distributed(cause)
            self.fail(error)
            raise error from cause
        except BaseException as cause:
            self.fail(RuntimeError(f"a round of {self._round.name} was abandoned: {cause}"))
            raise
        del self._missing[id(weight.parameter)]

    def close(self, prepare: Callable[[Weight], None]) -> Round:
        """Submits all that is missing. From here on results may be waited for."""
        for weight in list(self._missing.values()):
            self.add(weight, prepare)
        self._round.close()
        return self._round

    def fail(self, cause: Exception) -> None:
        """Gives the round up. Every later round of the set raises `cause`."""
        self._missing.clear()
        self._round.give_up(cause)


class Rounds:
    """One round of each of an optimizer's sets."""

    def __init__(self, rounds: Sequence[Round]) -> None:
        self._rounds = rounds

    @property
    def is_over(self) -> bool:
        return all(round.is_over for round in self._rounds)

    def done(self) -> bool:
        """Whether all results are here, or an error is. Never blocks."""
        return all(round.done() for round in self._rounds)

    def wait(self) -> None:
        for round in self._rounds:
            round.wait()

    def take(self, parameter: torch.Tensor, use: Use) -> None:
        """Waits for one result, if it is still to be taken, and hands it to `use`."""
        for round in self._rounds:
            round.take_of(parameter, use)

    def take_all(self, use: Use | None = None) -> None:
        """All that are left; raises the first error when it has seen to all of them."""
        error = None
        for round in self._rounds:
            try:
                round.take_all(use)
            except Exception as cause:
                error = error or cause
        if error is not None:
            raise error
