# SPDX-License-Identifier: Apache-2.0
"""The systems: where and when the weights of a training are updated."""

import argparse
import dataclasses
import re

from braid.torch.methods.delay import METHODS, PULLS, Delay, parse_delay

SYNC, SHARDED, ACCO, DILOCO, LOCAL = "sync", "sharded", "acco", "diloco", "local-sgd"
KINDS = (SYNC, SHARDED, ACCO, *METHODS, f"{DILOCO}:STEPS", f"{LOCAL}:STEPS")
_FORCE = "force"
_FORWARD, _BACKWARD = "overlap_forward", "overlap_backward"
_OVERLAPS = (_FORWARD, _BACKWARD)


@dataclasses.dataclass(frozen=True)
class System:
    """One row of the table. What does not belong to its kind is as if it were not there."""

    text: str
    kind: str
    delay: Delay = Delay()
    is_forced: bool = False  # Although it is known to train worse, or to diverge.
    pull: str = "full"  # of sharded and acco
    overlaps_forward: bool = False
    overlaps_backward: bool = False
    sync_every: int = 1  # of diloco and local-sgd

    @property
    def is_delayed(self) -> bool:
        return self.kind in METHODS

    @property
    def cycle_steps(self) -> int:
        """After so many steps the same is sent again."""
        if self.kind == "ssd-sgd":
            return self.delay.pull_every
        if self.kind == "cd-sgd":
            return self.delay.correction_every or 1
        if self.kind == ACCO:
            return 2  # a half batch each
        return self.sync_every


def parse(text: str) -> System:
    kind, colon, rest = text.partition(":")
    try:
        if kind in METHODS:
            return _delayed(text)
        if kind in (SHARDED, ACCO):
            return _sharded(text, kind, rest)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}': {error}") from None
    if kind in (DILOCO, LOCAL) and re.fullmatch(r"[1-9]\d{0,5}", rest):
        return System(text, kind, sync_every=int(rest))
    if text != SYNC:
        raise argparse.ArgumentTypeError(f"'{text}' is none of {', '.join(KINDS)}")
    return System(text, kind)


def _delayed(text: str) -> System:
    """The options of BRAID_UPDATE, and force."""
    method, _, rest = text.partition(":")
    options = [part for part in rest.split(",") if part]
    own = ",".join(part for part in options if part != _FORCE)
    delay = parse_delay(f"{method}:{own}")
    if "warmup_steps=" not in own:
        delay = dataclasses.replace(delay, warmup_steps=None)
    return System(text, method, delay, is_forced=_FORCE in options)


def _sharded(text: str, kind: str, rest: str) -> System:
    """acco has the same options, but for what there is to overlap."""
    options = [part for part in rest.split(",") if part]
    known = {f"pull={pull}": pull for pull in PULLS}
    others = _OVERLAPS if kind == SHARDED else ()
    for option in options:
        if option not in known and option not in others:
            raise ValueError(f"'{option}' is none of {', '.join([*known, *others])}")
    pulls = [known[option] for option in options if option in known]
    return System(
        text, kind, pull=(pulls or ["full"])[-1], overlaps_forward=_FORWARD in options,
        overlaps_backward=_BACKWARD in options,
    )  # fmt: skip


def parse_list(text: str) -> list[System]:
    """Options have commas as well: a part NAME=VALUE, and a word that is an option, belong to the part before."""
    texts: list[str] = []
    for part in text.split(","):
        if texts and (re.match(r"[a-z_]+=", part) or part in (_FORCE, *_OVERLAPS)):
            texts[-1] += f",{part}"
        else:
            texts.append(part)
    if len(set(texts)) != len(texts):
        raise argparse.ArgumentTypeError(f"'{text}' names something twice")
    return [parse(one) for one in texts]


def objection(system: System, momentum: float, steps_between: int | None = None) -> str:
    """Why it cannot be measured so; empty if it can. `steps_between`: two evaluations."""
    if system.is_delayed:
        try:
            system.delay.refuse_divergence(momentum, system.is_forced)
        except ValueError as error:
            # To a script it says what is written in Python.
            return f"{system.text}: {str(error).replace('force=True', 'the option force')}"
    is_local = system.kind in (DILOCO, LOCAL)
    if is_local and steps_between is not None and steps_between % system.sync_every:
        every = system.sync_every
        return f"{system.text}: nodes have the same weights each {every} steps, and --evaluate-every is no multiple"
    return ""
