# SPDX-License-Identifier: Apache-2.0
"""What must hold on a GPU, and whether it did: ratios and sums of one run's rows. Pure functions."""

import dataclasses
from collections.abc import Iterable

from . import plan

_CONSTANT_SECONDS = 0.010


@dataclasses.dataclass(frozen=True)
class Bar:
    name: str
    wanted: str
    value: float | None  # None: it was not measured
    limit: float
    at_least: bool = False  # else the limit is the most

    @property
    def held(self) -> bool | None:
        if self.value is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def as_json(self) -> dict:
        return {**dataclasses.asdict(self), "held": self.held}


class Rows:
    """The rows of a run, and single figures of them."""

    def __init__(self, rows: Iterable[dict]):
        self._rows = list(rows)

    def of(self, test: str) -> list[dict]:
        return [row for row in self._rows if row["test"] == test]

    def value(self, test: str, field: str, **wanted) -> float | None:
        """None: there is no such row. A field may be None, too."""
        for row in self.of(test):
            if all(row.get(name) == one for name, one in wanted.items()):
                return row[field]
        return None


def bars(rows: list[dict], seconds: float, seconds_max: float) -> list[Bar]:
    found = Rows(rows)
    return [
        Bar("the measurement ends in time", f"≤ {seconds_max:g} s", seconds, seconds_max),
        _exact(found),
        *_copies(found),
        *_ddp(found),
        _uneven(found),
        _ideal(found, "fsdp", "FSDP2", 1.15),
        _held(found),
        Bar("a matrix product beside a waiting collective keeps its rate", "≥ 0.98",
            found.value("beside", "ratio", network=plan.CAPPED, system=plan.BRAID), 0.98, at_least=True),
    ]  # fmt: skip


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _exact(rows: Rows) -> Bar:
    bad = None
    for row in rows.of("collectives"):
        if row["system"] == plan.BRAID:
            bad = row["wrong"] + row["refused"]
    return Bar("collectives that are wrong or refused", "0", bad, 0)


def _copies(rows: Rows) -> list[Bar]:
    """Against the fastest copy of the probe, one way at a time."""
    made = []
    for name, own, probed in (("to the host", "to_host", "d2h_gb_s"), ("to the GPU", "to_device", "h2d_gb_s")):
        best = max((row[probed] for row in rows.of("probe copy")), default=None)
        rate = rows.value("copies", f"{own}_gb_per_second", system=plan.BRAID)
        made.append(Bar(f"copies {name} ÷ the probe's", "≥ 0.9", _ratio(rate, best), 0.9, at_least=True))
    return made


def _ideal(rows: Rows, test: str, name: str, factor: float) -> Bar:
    """(step − 10 ms) ÷ max(computing, bytes over the wire), on the capped network."""

    def field(one: str) -> float | None:
        return rows.value(test, one, network=plan.CAPPED, system=plan.BRAID)

    step, computing, wire = field("step_seconds"), field("computing_seconds"), field("wire_seconds")
    value = None if step is None or not wire else (step - _CONSTANT_SECONDS) / max(computing, wire)
    return Bar(f"{name}: (step − 10 ms) ÷ max(computing, wire)", f"≤ {factor:.2f}", value, factor)


def _ddp(rows: Rows) -> list[Bar]:
    def step(system: str) -> float | None:
        return rows.value("ddp", "step_seconds", network=plan.CAPPED, system=system)

    own = step(plan.BRAID)
    return [
        _ideal(rows, "ddp", "DDP", 1.10),
        Bar("DDP: step ÷ NCCL's as it comes", "≤ 0.60", _ratio(own, step(plan.NCCL)), 0.60),
        Bar("DDP: step ÷ that of NCCL with 2 × 8 sockets", "≤ 1.05", _ratio(own, step(plan.NCCL_SOCKETS)), 1.05),
    ]


def _uneven(rows: Rows) -> Bar:
    def seconds(system: str) -> float | None:
        return rows.value("rates", "median_seconds", network=plan.UNEVEN, system=system)

    value = _ratio(seconds(plan.BRAID), seconds(plan.NCCL_SOCKETS))
    return Bar("25 MB, uneven caps: ÷ NCCL with 2 × 8 sockets", "≤ 0.75", value, 0.75)


def _held(rows: Rows) -> Bar:
    def held(system: str) -> float | None:
        return rows.value("ddp", "backward_held_seconds", network=plan.CAPPED, system=system)

    return Bar("thread held in backward ÷ NCCL's", "≤ 1.20", _ratio(held(plan.BRAID), held(plan.NCCL)), 1.20)
