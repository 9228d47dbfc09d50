# SPDX-License-Identifier: Apache-2.0
"""The course of a comparison, and its report."""

import argparse
import contextlib
import dataclasses
import statistics

from .. import needs, run, table
from ..cluster import Cluster
from . import figures, mpi, options, systems, wire
from .cases import BEFORE, BRAID, GLOO, Case

_COUNTS = ("system_calls", "wake_ups", "bytes_reduced", "bytes_copied", "bytes_sent", "bytes_received")


def main(argv: list[str]) -> int:
    return Comparison(options.parse(argv)).run(argv)


class Comparison(run.Run):
    command = "bench/compare"

    def __init__(self, chosen: argparse.Namespace):
        super().__init__(chosen)
        self._wires: list[wire.Wire] = []
        self._counts: list[dict] = []
        self._samples = {(name, case): [] for case in chosen.cases for name in chosen.systems}

    def missing(self) -> list[str]:
        chosen = self._chosen
        found = needs.programs(iperf3="iperf3") if self._wants_wire() else []
        found += [text for name in chosen.systems if name in mpi.LIBRARIES for text in mpi.missing(name)]
        if chosen.through or set(GLOO).intersection(chosen.systems):
            found += needs.torch()
        wanted = []
        for braid in chosen.installations.values():
            wanted += [braid.program("braidd"), braid.program("braid-bench")]
            if chosen.through:
                wanted += [braid.library, f"{braid.python}/braid/torch/__init__.py"]
        return found + needs.files(wanted)

    def _wants_wire(self) -> bool:
        return self._chosen.nodes > 1 and not self._chosen.no_wire

    def measure(self) -> None:
        chosen = self._chosen
        with contextlib.ExitStack() as stack:
            cluster = Cluster(chosen, chosen.installations.get(BRAID))
            stack.callback(self.end, cluster)
            before = None
            if BEFORE in chosen.installations:  # its daemons cannot be on the same nodes
                before = Cluster(chosen, chosen.installations[BEFORE])
                stack.callback(self.end, before)
            working = []
            for name in chosen.systems:
                system = systems.make(name, before if name == BEFORE else cluster, chosen)
                stack.callback(system.close)
                if self._attempt(system, system.start):
                    working.append(system)
                    self.versions |= system.versions
            connections = next((s.flows for s in working if s.name == BRAID), 0)
            for repeat in range(chosen.repeats):
                self.say(f"repeat {repeat + 1} of {chosen.repeats}")
                for one in filter(None, (cluster, before)):
                    one.check()
                if self._wants_wire():
                    self._measure_wire(cluster, connections or wire.CONNECTIONS_WITHOUT_BRAID)
                self._one_repeat(working, repeat)
            if chosen.counts:
                self._count([system for system in working if system.name in chosen.installations])

    def _count(self, working: list) -> None:
        for system in working:
            for case in self._chosen.cases:
                if system.name not in self.errors:
                    self._attempt(system, lambda s=system, c=case: self._count_one(s, c))

    def _count_one(self, system, case: Case) -> None:
        self._counts.append({"system": system.name, "bytes": case.bytes, **system.count(case)})

    def _measure_wire(self, cluster: Cluster, connections: int) -> None:
        if "wire" not in self.errors:
            self.attempt("wire", lambda: self._wires.append(wire.measure(cluster, connections)))

    def _one_repeat(self, working: list, repeat: int) -> None:
        for case in self._chosen.cases:
            # Each is the first one in some repeats.
            turn = repeat % max(1, len(working))
            for system in working[turn:] + working[:turn]:
                if system.name not in self.errors:
                    self._attempt(system, lambda s=system, c=case: self._measure(s, c))

    def _measure(self, system, case: Case) -> None:
        self._samples[system.name, case].append(system.measure(case))

    def _attempt(self, system, action) -> bool:
        """A system that has failed is left out from then on."""
        works = self.attempt(system.name, action)
        if not works:
            system.close()
        return works

    def report(self) -> dict:
        chosen = self._chosen
        wire_speed = statistics.median(w.mean for w in self._wires) if self._wires else None
        nic = float(chosen.nic_mbit) / 1e3 if chosen.nic_mbit else None
        shape = figures.Shape(chosen.nodes, chosen.ranks_per_node, chosen.iterations, nic, wire_speed)
        delay = {"delay_ms": chosen.delay.delay_ms, "loss_percent": chosen.delay.loss_percent}
        rows = [{**row, **delay} for row in figures.rows(self._samples, shape)]
        return {
            "network": chosen.delay.in_words(),
            "wire_gbit_per_second": wire_speed,
            "wire_connections": self._wires[0].connections if self._wires else None,
            "wire_repeats": [one.gbit_per_second for one in self._wires],
            "rows": rows,
            "comparisons": figures.comparisons(rows),
            "counts": self._counts,
        }

    def lines(self, report: dict) -> list[str]:
        return [f"# {heading(report)}", *table.lines(_columns(report), report["rows"]), *_comparison_lines(report),
                *_counts_lines(report["counts"])]  # fmt: skip


def heading(report: dict) -> str:
    options = report["options"]
    parts = [f"through {options['through']}"] if options["through"] else []
    parts.append(table.shape_text(options))
    if report["network"]:
        parts.append(report["network"])
    if report["wire_gbit_per_second"]:
        wire_text = table.number_text(report["wire_gbit_per_second"])
        parts.append(f"wire {wire_text} Gbit/s over {report['wire_connections']} connections")
    return ", ".join(parts)


def _columns(report: dict) -> list[table.Column]:
    times = [table.column(name, f"{name}_seconds", table.seconds_text) for name in ("median", "p99")]
    processor = [
        table.column(f"{title} s/GB", f"{name}_seconds_per_gigabyte", table.number_text)
        for title, name in (("CPU", "cpu"), ("machine", "machine"))
    ]
    size = table.column("bytes", "bytes", table.bytes_text)
    if not report["options"]["through"]:
        bus = table.column("bus Gbit/s", "bus_gbit_per_second", table.number_text)
        wire = table.column("of wire", "line_fraction", table.percent_text)
        nic = table.column("of NIC", "nic_fraction", table.percent_text)
        return [size, table.column("system", "system"), *times, bus, wire, nic, *processor]
    measured = {row["system"] for row in report["rows"]}
    names = [table.column(name, name) for name in ("collective", "system", "dtype")]
    ratios = [
        table.column(f"÷ {name}", f"to_{name}", table.number_text)
        for name, system in (("gloo", "gloo"), ("before", BEFORE))
        if system in measured
    ]
    return [*names, size, *times, *processor, *ratios]


def _comparison_lines(report: dict) -> list[str]:
    """Through torch they are columns."""
    lines = []
    for one in [] if report["options"]["through"] else report["comparisons"]:
        parts = []
        if one["best_peer"]:
            ratio = table.number_text(one["braid_to_best_peer"])
            parts.append(f"braid ÷ {one['best_peer']}, the fastest peer: {ratio}")
        if one["braid_to_before"]:
            parts.append(f"braid ÷ braid-before: {table.number_text(one['braid_to_before'])}")
        lines.append(f"{table.bytes_text(one['bytes'])}: {'; '.join(parts)}")
    return lines


def _counts_lines(counts: list[dict]) -> list[str]:
    """For one operation: of one node's daemon, and of one trainer."""
    if not counts:
        return []
    rows = [
        {"system": one["system"], "bytes": one["bytes"], "process": name, **dict.fromkeys(_COUNTS), **one[process]}
        for one in counts
        for name, process in (("braidd", "daemon"), ("trainer", "trainer"))
    ]
    columns = [table.column("system", "system"), table.column("bytes", "bytes", table.bytes_text)]
    columns += [table.column("an operation in", "process")]
    columns += [table.column(name.replace("_", " "), name, table.number_text) for name in _COUNTS]
    reasons = dict.fromkeys(one["why_not"] for one in counts if one["why_not"])
    return ["", *table.lines(columns, rows), *(f"-: {reason}" for reason in reasons)]
