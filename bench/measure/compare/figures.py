# SPDX-License-Identifier: Apache-2.0
"""From measured times to what is reported. Pure functions."""

import dataclasses
import math
import statistics

from .cases import BEFORE, BRAID, Case


@dataclasses.dataclass(frozen=True)
class Sample:
    """One repeat of one case with one system."""

    median_seconds: float
    p99_seconds: float
    cpu_seconds: float  # of all processes on all nodes, in all iterations
    machine_seconds: float | None = None  # of all processors; None: the iterations were too short to tell


@dataclasses.dataclass(frozen=True)
class Shape:
    """What all rows of a run have in common."""

    nodes: int
    ranks_per_node: int
    iterations: int
    nic_gbit_per_second: float | None = None
    wire_gbit_per_second: float | None = None

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


def p99(values: list[float]) -> float:
    """The smallest value that 99 % of all do not exceed, as braid-bench has it."""
    return sorted(values)[math.ceil(len(values) * 0.99) - 1]


def bus_gbit_per_second(case: Case, ranks: int, seconds: float) -> float:
    return case.bus_share(ranks) * case.bytes * 8 / seconds / 1e9 if seconds > 0 else 0.0


def rows(samples: dict[tuple[str, Case], list[Sample]], shape: Shape) -> list[dict]:
    """The table, without what was never measured."""
    made = [row(system, case, some, shape) for (system, case), some in samples.items() if some]
    for field, other in (("to_gloo", "gloo"), ("to_before", BEFORE)):
        seconds = {case_of(one): one["median_seconds"] for one in made if one["system"] == other}
        for one in made:
            one[field] = _fraction(one["median_seconds"], seconds.get(case_of(one)))
    return made


def row(system: str, case: Case, samples: list[Sample], shape: Shape) -> dict:
    """One line of the table; `samples` are its repeats, one at least."""
    seconds = statistics.median([sample.median_seconds for sample in samples])
    bus = bus_gbit_per_second(case, shape.ranks, seconds)
    gigabytes = case.bytes * shape.iterations / 1e9
    cpu_seconds = statistics.median([sample.cpu_seconds for sample in samples])
    machine = [s.machine_seconds for s in samples if s.machine_seconds is not None]
    per_gigabyte = 1 / shape.nodes / gigabytes
    return {
        "system": system,
        "nodes": shape.nodes,
        "ranks_per_node": shape.ranks_per_node,
        **dataclasses.asdict(case),
        "median_seconds": seconds,
        "p99_seconds": statistics.median([sample.p99_seconds for sample in samples]),
        "bus_gbit_per_second": bus,
        "line_fraction": _fraction(bus, shape.wire_gbit_per_second),
        "nic_fraction": _fraction(bus, shape.nic_gbit_per_second),
        "cpu_seconds_per_gigabyte": cpu_seconds * per_gigabyte,
        "machine_seconds_per_gigabyte": statistics.median(machine) * per_gigabyte if machine else None,
        "repeats": [dataclasses.asdict(sample) for sample in samples],
    }


def _fraction(part: float, whole: float | None) -> float | None:
    return part / whole if whole else None


def case_of(one: dict) -> Case:
    return Case(one["bytes"], one["collective"], one["dtype"])


def comparisons(rows: list[dict]) -> list[dict]:
    """Per case the time of braid over that of the fastest peer, and over that of the braid before, as far as they
    were measured."""
    found = []
    for case in dict.fromkeys(map(case_of, rows)):
        seconds = {one["system"]: one["median_seconds"] for one in rows if case_of(one) == case}
        own, before = seconds.pop(BRAID, None), seconds.pop(BEFORE, None)
        if own is None or not (seconds or before):
            continue
        best = min(seconds, key=seconds.get, default=None)
        found.append(
            {
                **dataclasses.asdict(case),
                "best_peer": best,
                "braid_to_best_peer": _fraction(own, seconds.get(best)),
                "braid_to_before": _fraction(own, before),
            }
        )
    return found
