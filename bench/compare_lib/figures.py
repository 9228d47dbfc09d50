# SPDX-License-Identifier: Apache-2.0
"""From measured times to what is reported. Pure functions."""

import dataclasses
import math
import statistics


@dataclasses.dataclass(frozen=True)
class Sample:
    """One repeat of one size with one system."""

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
    delay_ms: float = 0.0
    loss_percent: float = 0.0

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


def median(values: list[float]) -> float:
    return statistics.median(values)


def p99(values: list[float]) -> float:
    """The smallest value that 99 % of all do not exceed, as braid-bench has it."""
    return sorted(values)[math.ceil(len(values) * 0.99) - 1]


def slowest(by_rank: list[list[float]]) -> list[float]:
    """Per iteration the time of the slowest rank."""
    return [max(times) for times in zip(*by_rank, strict=True)]


def bus_gbit_per_second(size: int, ranks: int, seconds: float) -> float:
    return 2 * (ranks - 1) / ranks * size * 8 / seconds / 1e9 if seconds > 0 else 0.0


def row(system: str, size: int, samples: list[Sample], shape: Shape) -> dict:
    """One line of the table; `samples` are its repeats, one at least."""
    seconds = median([sample.median_seconds for sample in samples])
    bus = bus_gbit_per_second(size, shape.ranks, seconds)
    reduced_gigabytes = size * shape.iterations / 1e9
    cpu_seconds = median([sample.cpu_seconds for sample in samples])
    machine = [s.machine_seconds for s in samples if s.machine_seconds is not None]
    per_gigabyte = 1 / shape.nodes / reduced_gigabytes
    return {
        "system": system,
        "nodes": shape.nodes,
        "ranks_per_node": shape.ranks_per_node,
        "delay_ms": shape.delay_ms,
        "loss_percent": shape.loss_percent,
        "bytes": size,
        "median_seconds": seconds,
        "p99_seconds": median([sample.p99_seconds for sample in samples]),
        "bus_gbit_per_second": bus,
        "line_fraction": _fraction(bus, shape.wire_gbit_per_second),
        "nic_fraction": _fraction(bus, shape.nic_gbit_per_second),
        "cpu_seconds_per_gigabyte": cpu_seconds * per_gigabyte,
        "machine_seconds_per_gigabyte": median(machine) * per_gigabyte if machine else None,
        "repeats": [dataclasses.asdict(sample) for sample in samples],
    }


def _fraction(part: float, whole: float | None) -> float | None:
    return part / whole if whole else None


def comparisons(rows: list[dict]) -> list[dict]:
    """Per size the time of braid over that of the fastest peer; sizes that lack either are left out."""
    found = []
    for size in dict.fromkeys(one["bytes"] for one in rows):
        seconds = {one["system"]: one["median_seconds"] for one in rows if one["bytes"] == size}
        own = seconds.pop("braid", None)
        if own is None or not seconds:
            continue
        best = min(seconds, key=seconds.get)
        ratio = own / seconds[best]
        found.append({"bytes": size, "best_peer": best, "braid_to_best_peer": ratio})
    return found
