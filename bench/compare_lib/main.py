# SPDX-License-Identifier: Apache-2.0
"""The course of a comparison."""

import argparse
import contextlib
import dataclasses
import statistics

from . import course, figures, options, requirements, systems, table, wire
from .cases import Case
from .cluster import Cluster
from .errors import SystemFailed
from .paths import BEFORE, BRAID


def main(argv: list[str]) -> int:
    return _Comparison(options.parse(argv)).run(argv, requirements.check, table.of)


class _Comparison(course.Run):
    def __init__(self, chosen: argparse.Namespace):
        super().__init__("bench/compare", chosen)
        self._wires: list[wire.Wire] = []
        self._samples = {(name, case): [] for case in chosen.cases for name in chosen.systems}

    def measure(self) -> None:
        with contextlib.ExitStack() as stack:
            braids = self._chosen.installations
            cluster = Cluster(self._chosen, braids.get(BRAID))
            stack.callback(self.end, cluster)
            before = None
            if BEFORE in braids:  # its daemons cannot be on the same nodes
                before = Cluster(self._chosen, braids[BEFORE])
                stack.callback(self.end, before)
            working = []
            for name in self._chosen.systems:
                system = systems.make(name, before if name == BEFORE else cluster, self._chosen)
                stack.callback(system.close)
                if self._attempt(system, system.start):
                    working.append(system)
                    self.versions |= system.versions
            connections = next((s.flows for s in working if s.name == BRAID), 0)
            for repeat in range(self._chosen.repeats):
                self.say(f"repeat {repeat + 1} of {self._chosen.repeats}")
                for one in filter(None, (cluster, before)):
                    one.check()
                if requirements.wants_wire(self._chosen):
                    self._measure_wire(cluster, connections or wire.CONNECTIONS_WITHOUT_BRAID)
                self._one_repeat(working, repeat)

    def _measure_wire(self, cluster: Cluster, connections: int) -> None:
        if "wire" in self.errors:
            return
        try:
            self._wires.append(wire.measure(cluster, connections))
        except SystemFailed as failure:
            self.errors["wire"] = str(failure)
            self.say(f"the wire was not measured: {failure}")

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
        try:
            action()
        except SystemFailed as failure:
            self.fail(system.name, failure)
            system.close()
            return False
        return True

    def report(self) -> dict:
        chosen = self._chosen
        wire_speed = statistics.median(w.mean for w in self._wires) if self._wires else None
        nic = float(chosen.nic_mbit) / 1e3 if chosen.nic_mbit else 0.0
        shape = figures.Shape(
            chosen.nodes,
            chosen.ranks_per_node,
            chosen.iterations,
            nic or None,
            wire_speed,
            chosen.delay.delay_ms,
            chosen.delay.loss_percent,
        )
        rows = figures.rows(self._samples, shape)
        return {
            "through": chosen.through,
            "nodes": chosen.nodes,
            "ranks_per_node": chosen.ranks_per_node,
            "nic_mbit": float(chosen.nic_mbit or 0),
            "flow_mbit": [float(cap) for cap in (chosen.flow_mbit or "0").split(",")],
            **dataclasses.asdict(chosen.delay),
            "network": chosen.delay.in_words(),
            "iterations": chosen.iterations,
            "repeats": chosen.repeats,
            "wire_gbit_per_second": wire_speed,
            "wire_connections": self._wires[0].connections if self._wires else None,
            "wire_repeats": [one.gbit_per_second for one in self._wires],
            "rows": rows,
            "comparisons": figures.comparisons(rows),
        }
