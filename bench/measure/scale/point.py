# SPDX-License-Identifier: Apache-2.0
"""One point: a cluster of its own, its jobs, and what its daemons cost part after part."""

import argparse
import dataclasses
import json
import sys
import time

from cluster_lib.state import Delay

from ..cluster import Cluster
from ..errors import Deadline, SystemFailed
from ..group import Group
from . import figures, probe

_DIVIDED_BY = 64  # a trace's counts: messages depend on how many tensors there are, not on their bytes
# What a tuner's nodes send each step would count as reports for plans.
# They would send messages that are counted as plans'.
_WITHOUT_TRIALS = ("tune.mode=off", "node.polling=off")
_SETTLE_S = 1.0  # heartbeats of daemons that have just met begin


@dataclasses.dataclass(frozen=True)
class Point:
    nodes: int
    ranks_per_node: int = 1
    jobs: int = 1

    @property
    def trainers(self) -> int:
        return self.nodes * self.ranks_per_node * self.jobs

    def __str__(self) -> str:
        return f"{self.nodes}x{self.ranks_per_node}x{self.jobs}"


def measure(point: Point, options: argparse.Namespace) -> list[dict]:
    """The point's figures, a row per role; SystemFailed if it cannot be completed."""
    shape = argparse.Namespace(
        nodes=point.nodes,
        ranks_per_node=point.ranks_per_node,
        nic_mbit=None,
        flow_mbit=None,
        delay=Delay(),
        settings=[*_WITHOUT_TRIALS, *options.settings],
    )
    cluster = Cluster(shape, options.braid)
    try:
        found = _Measurement(point, options, cluster).run()
    finally:
        complaint = cluster.end()
    if complaint:
        raise SystemFailed(complaint)
    return found


class _Measurement:
    def __init__(self, point: Point, options: argparse.Namespace, cluster: Cluster):
        self._point, self._options, self._cluster = point, options, cluster
        self._braid = options.braid
        self._tensors = tensors_of(options.trace)

    def run(self) -> list[dict]:
        trainers = Group.of(self._cluster, self._start, self._point.trainers, self._options.timeout)
        try:
            base = self._look()
            formation_s = self._ask(trainers, "open", timeout=self._options.timeout)
            met_s = time.monotonic()
            time.sleep(_SETTLE_S)
            formed = self._look()
            time.sleep(self._options.idle_seconds)
            idle = self._look()
            self._ask(trainers, "register", **self._tensors)
            registered = self._look()
            self._ask(trainers, "operations", count=self._options.operations)
            operated = self._look()
            steps_s = self._ask(trainers, "steps", count=self._options.steps)
            stepped = self._look()
            self._ask(trainers, "close")
        finally:
            trainers.close()
        seen = (base, formed, idle, registered, operated, stepped)
        courses = [figures.Course(met_s, *snapshots) for snapshots in zip(*seen, strict=True)]
        addresses = [node.address for node in self._cluster.nodes]
        return figures.of_point(
            self._point, courses, addresses, formation_s, steps_s / self._options.steps
        )

    def _start(self, variables: dict[str, str]) -> list:
        argv = [sys.executable, "-m", "measure.scale.worker"]
        variables = {**variables, "BRAID_LIBRARY": self._braid.library}
        return [
            program
            for job in range(self._point.jobs)
            for program in self._cluster.start_ranks(
                "braid", argv, BRAID_JOB=f"scale-{job}", **variables
            )
        ]

    def _look(self) -> list[probe.Snapshot]:
        return [probe.take(node, self._braid.program("braidctl")) for node in self._cluster.nodes]

    def _ask(self, trainers: Group, what: str, **task) -> float:
        """Seconds from the first trainer's beginning to the last one's end."""
        try:
            answers = trainers.ask({"do": what, **task}, Deadline(self._options.timeout))
        except SystemFailed as failure:
            raise SystemFailed(f"{what}: {failure}") from None
        return max(one["ended"] for one in answers) - min(one["began"] for one in answers)


def tensors_of(trace: str) -> dict[str, list]:
    """Names and counts in the order of the backward pass; traces begin with the first layer."""
    try:
        with open(trace, encoding="utf-8") as file:
            fields = json.load(file)
        names = [str(name) for name in reversed(fields["names"])]
        counts = [max(1, int(count) // _DIVIDED_BY) for count in reversed(fields["numel"])]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemFailed(f"{trace} is no trace: {error!r}") from None
    if not names or len(names) != len(counts):
        raise SystemFailed(f"{trace} is no trace: {len(names)} names and {len(counts)} counts")
    return {"names": names, "counts": counts}
