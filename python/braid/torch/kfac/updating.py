# SPDX-License-Identifier: Apache-2.0
"""How the running averages of a model's factors come by what each step makes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from braid.torch.kfac.averaging import FactorAverages
from braid.torch.kfac.factors import Factor
from braid.torch.kfac.failures import Failures


class FactorUpdates:
    """Brings each running average up to date once in a step that makes factors.

    Hooks call added(), in the threads that run the model; the rest is the thread's that trains.
    """

    def __init__(
        self, factors: Sequence[Factor], averages: FactorAverages | None, is_pipelined: bool,
        failures: Failures,
    ) -> None:  # fmt: skip
        """`averages` of None: each factor is this rank's alone. `is_pipelined`: factors go to the
        daemons as soon as they are complete; else in finish_step()."""
        self._factors = factors
        self._averages = averages
        self._is_pipelined = is_pipelined and averages is not None
        self._failures = failures
        self._step = 0
        self._decay = 0.0
        self._rest: set[int] = set()
        self.is_on = False

    def begin_step(self, step: int, decay: float | None) -> None:
        """`decay` of None: this step makes no factors."""
        self._step = step
        self.is_on = decay is not None
        self._decay = decay or 0.0
        self._rest = set(map(id, self._factors)) if self.is_on else set()

    def refuse_begun(self, what: str) -> None:
        """RuntimeError where factors of this step were submitted."""
        if self._averages is not None and self._averages.is_begun:
            raise RuntimeError(
                f"KFAC: {what} comes between a backward pass, whose factors are on their way, and "
                "step(): call step() first"
            )

    def added(self, factor: Factor) -> None:
        if self._is_pipelined and factor.is_complete and not self._averages.is_submitted(factor):
            self._averages.submit(factor)

    def submit_rest(self) -> None:
        """What no hook has submitted."""
        if self.is_on and self._averages is not None:
            self._averages.submit_rest()

    def finish(self, factor: Factor) -> None:
        """After this the factor is what it shall be in this step."""
        if id(factor) not in self._rest:
            return
        self._rest.discard(id(factor))
        if self._averages is not None:
            self._averages.take(factor, lambda new: self._update(factor, new[:-1], new[-1]))
        elif factor.has_new:
            new = factor.take_vector()
            self._update(factor, new, new.new_ones(()))

    def finish_step(self) -> None:
        if not self.is_on:
            return
        for factor in self._factors:
            self.finish(factor)
        if self._averages is not None:
            self._averages.end_step()
        for factor in self._factors:
            factor.end_step()

    def _update(self, factor: Factor, new: torch.Tensor, ranks: torch.Tensor) -> None:
        """`new` is a sum over so many ranks."""
        count, total = torch.stack([ranks, new.sum()]).tolist()
        if not math.isfinite(total):
            text = "it is not finite; its running average stays as it was"
            self._failures.note(factor.name, self._step, text)
        elif count > 0:
            factor.update(new, self._decay, count)
