# SPDX-License-Identifier: Apache-2.0
"""An update of an optimizer's weights whose gradients are submitted as they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from braid.torch.weights.rounds import OpenRound, Round
from braid.torch.weights.weight import Settings, Weight
from braid.torch.weights.weight_set import WeightSet


class OpenUpdate:
    """An open round of each of an optimizer's sets. One thread at a time uses it, not always the
    same one.

    The ranks may submit gradients in different orders. After an error all rounds are given up, and
    the sets take no other.
    """

    def __init__(
        self, sets: Sequence[WeightSet], settings: Callable[[torch.Tensor], Settings]
    ) -> None:
        """The last rounds of all sets must be over. `settings` are those of the whole update."""
        self._settings = settings
        self._rounds: list[OpenRound] = []
        try:
            for weights in sets:
                self._rounds.append(weights.begin())
        except Exception as cause:
            self.fail(cause)
            raise

    def add(self, parameter: torch.Tensor, gradient: torch.Tensor | None) -> None:
        """Submits a gradient; None stands for zeros. A second one of a parameter is passed over."""
        try:
            for round in self._rounds:
                weight = round.missing(parameter)
                if weight is not None:
                    round.add(weight, self._prepare_with(lambda _: gradient))
        except Exception as cause:
            self.fail(cause)
            raise

    def close(self, gradient: Callable[[torch.Tensor], torch.Tensor | None]) -> list[Round]:
        """Submits what is missing. The results of the rounds are the new weights."""
        try:
            return [round.close(self._prepare_with(gradient)) for round in self._rounds]
        except Exception as cause:
            self.fail(cause)
            raise

    def fail(self, cause: Exception) -> None:
        """Gives it up. The next update of these sets is told `cause`."""
        for round in self._rounds:
            round.fail(cause)

    def _prepare_with(
        self, gradient: Callable[[torch.Tensor], torch.Tensor | None]
    ) -> Callable[[Weight], None]:
        def prepare(weight: Weight) -> None:
            weight.give_gradient(gradient(weight.parameter))
            weight.ask_for_update(self._settings(weight.parameter))

        return prepare
