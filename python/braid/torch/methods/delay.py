# SPDX-License-Identifier: Apache-2.0
"""How training is delayed: the settings of DelayedOptimizer, checked before anything begins."""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from typing import Any

_log = logging.getLogger("braid")

METHODS = ("od-sgd", "ssd-sgd", "cd-sgd")
LOCALS = {"od-sgd": ("sgd", "dc", "adc"), "ssd-sgd": ("sgd", "glu"), "cd-sgd": ("sgd", "dc", "adc")}
PULLS = ("full", "bf16")
WORKERS = ("node", "rank")

_WARMUP_STEPS_DEFAULT = 200
_PULL_EVERY_DEFAULT = {"sgd": 2, "glu": 4}
_CORRECTION_EVERY_DEFAULT = 5
# With momentum at the owners. Measured on four nodes (docs/updates.md; learning rate 0.1, momentum
# 0.9): plain local steps train with 2, lose four points with 3, and diverge with 10; GLU trains
# with 10, and not with 20.
_PULL_EVERY_MAX = {"sgd": 2, "glu": 10}


@dataclass(frozen=True)
class Delay:
    """`method` and what belongs to it; None: the method's usual value. check() comes before use."""

    method: str = "od-sgd"
    local: str | None = None
    local_lr: float | None = None
    warmup_steps: int | None = None
    pull_every: int | None = None
    correction_every: int | None = None
    alpha: float = 2.0
    beta: float = 0.5
    threshold: float | None = None
    pull: str = "full"
    worker: str = "node"

    def checked(self) -> Delay:
        """With all values filled in. ValueError says what would be right."""
        _one_of("method", self.method, METHODS)
        _one_of("pull", self.pull, PULLS)
        _one_of("worker", self.worker, WORKERS)
        local = self.local or ("glu" if self.method == "ssd-sgd" else "sgd")
        _one_of(f"local of {self.method}", local, LOCALS[self.method])
        self._belongs("pull_every", "ssd-sgd")
        self._belongs("correction_every", "cd-sgd")
        self._belongs("threshold", "cd-sgd")
        pull_every = 1
        if self.method == "ssd-sgd":
            pull_every = self.pull_every or _PULL_EVERY_DEFAULT[local]
        correction_every = self.correction_every or _CORRECTION_EVERY_DEFAULT
        warmup_steps = self.warmup_steps
        if warmup_steps is None:
            warmup_steps = _WARMUP_STEPS_DEFAULT
        for name, value, least in (
            ("pull_every", self.pull_every, 1),
            ("correction_every", self.correction_every, 1),
            ("warmup_steps", warmup_steps, 0),
            ("local_lr", self.local_lr, 0),
        ):
            if value is not None and value < least:
                raise ValueError(f"{name} is {least} or more, not {value}")
        if self.method == "cd-sgd" and not (self.threshold and self.threshold > 0):
            raise ValueError(
                "cd-sgd needs a threshold above 0: about the largest usual magnitude of an element "
                "of the gradient of one node, as 0.01"
            )
        return dataclasses.replace(
            self, local=local, pull_every=pull_every, correction_every=correction_every,
            warmup_steps=warmup_steps,
        )  # fmt: skip

    @property
    def codec(self) -> str:
        """The codec of what is pushed after the warm-up, for checked() settings."""
        if self.method != "cd-sgd" or self.correction_every == 1:
            return ""  # With each step in full there is nothing to encode.
        return f"2bit:threshold={self.threshold:g},full-every={self.correction_every}"

    def refuse_divergence(self, momentum: float, force: bool) -> None:
        """ValueError where training is known to get worse, or to diverge; with `force` a warning.
        The settings are checked()."""
        most = _PULL_EVERY_MAX.get(self.local or "")
        if self.method != "ssd-sgd" or not momentum or most is None or self.pull_every <= most:
            return
        right = f"pull every {most} steps or more often"
        if self.local == "sgd":
            right += ", use local=\"glu\""
        text = (
            f"ssd-sgd with local=\"{self.local}\", pull_every={self.pull_every} and momentum "
            f"{momentum:g} trains worse or diverges: {right}, or train without momentum"
        )
        if not force:
            raise ValueError(f"{text}; force=True tries it anyway")
        _log.warning("%s", text)

    def _belongs(self, name: str, method: str) -> None:
        if getattr(self, name) is not None and self.method != method:
            raise ValueError(f"{name} belongs to {method}, and this is {self.method}")


def parse_delay(text: str) -> Delay:
    """"od-sgd", "ssd-sgd:pull_every=4,local=glu,warmup_steps=100". Checked."""
    method, _, rest = text.partition(":")
    values: dict[str, Any] = {"method": method.strip()}
    kinds = {field.name: field.type for field in dataclasses.fields(Delay) if field.name != "method"}
    for part in filter(None, rest.split(",")):
        name, equals, value = part.partition("=")
        name, value = name.strip(), value.strip()
        if not equals or name not in kinds:
            raise ValueError(f"'{part}': an option is NAME=VALUE with one of {', '.join(kinds)}")
        values[name] = _value_of(name, value, str(kinds[name]))
    return Delay(**values).checked()


def _value_of(name: str, text: str, kind: str) -> Any:
    if "str" in kind:
        return text
    try:
        return int(text) if "int" in kind else float(text)
    except ValueError:
        number = "a whole number" if "int" in kind else "a number"
        raise ValueError(f"{name} is {number}, not '{text}'") from None


def _one_of(name: str, value: str, right: tuple[str, ...]) -> None:
    if value not in right:
        raise ValueError(f"{name} is one of {', '.join(right)}, not '{value}'")
