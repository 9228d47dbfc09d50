# SPDX-License-Identifier: Apache-2.0
"""The numbers that K-FAC is told: each is a constant, or a function of the step."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple, Union

Given = Union[float, Callable[[int], float]]


class Rule(NamedTuple):
    """What a number must be."""

    text: str
    holds: Callable[[float], bool]
    is_whole: bool = False
    may_be_none: bool = False


RULES = {
    "factor_update_steps": Rule("a whole number from 1 on", lambda x: x >= 1, is_whole=True),
    "inv_update_steps": Rule("a whole number from 1 on", lambda x: x >= 1, is_whole=True),
    "damping": Rule("above 0", lambda x: x > 0),
    "factor_decay": Rule("above 0, and at most 1", lambda x: 0 < x <= 1),
    "kl_clip": Rule("above 0, or None", lambda x: x > 0, may_be_none=True),
    "lr": Rule("0 or more", lambda x: x >= 0),
}


class Numbers:
    """K-FAC's numbers by name."""

    def __init__(self, **given: Given | None) -> None:
        self._given = given
        for name, value in given.items():
            if not callable(value):
                _checked(name, value, "")

    def at(self, name: str, step: int) -> Any:
        """ValueError if a function of the step gives what the number must not be."""
        value = self._given[name]
        return _checked(name, value(step), f"({step})") if callable(value) else value

    def constants(self) -> dict[str, Any]:
        """Those that are no functions."""
        return {name: value for name, value in self._given.items() if not callable(value)}

    def load(self, constants: dict[str, Any]) -> None:
        """Those among `constants` that were given; functions give way, as in kfac-pytorch."""
        found = {name: constants[name] for name in self._given if name in constants}
        for name, value in found.items():
            _checked(name, value, "")
        self._given.update(found)


def _checked(name: str, value: Any, of_step: str) -> Any:
    rule = RULES[name]
    if value is None and rule.may_be_none:
        return None
    kinds = numbers.Integral if rule.is_whole else numbers.Real
    is_right = isinstance(value, kinds) and not isinstance(value, bool)
    if not is_right or not math.isfinite(value) or not rule.holds(value):
        raise ValueError(f"KFAC: {name}{of_step} is {value!r}, and must be {rule.text}")
    return value
