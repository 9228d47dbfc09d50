# SPDX-License-Identifier: Apache-2.0
"""The steps of a run, one at a time, each within its own limit and all within the run's."""

import argparse
import dataclasses
import itertools
import subprocess
import time
from collections.abc import Callable, Iterable

from cluster_lib.state import NAMESPACES, Delay

from ..cluster import Cluster
from ..errors import Deadline, RunFailed, SystemFailed
from ..paths import Installation
from . import plan
from .measurement import Measurement

_STEP_SECONDS_MIN = 5.0  # nothing comes of less
_RESERVE_S = 8.0  # for taking down the cluster, and for the report
_GRACE_S, _GRACE_AFTER_FAILURE_S = 5.0, 0.5
DONE = "done"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a step ended: DONE, or why it has no figures, or not all of them."""

    step: plan.Step
    seconds: float
    text: str

    def as_json(self) -> dict:
        return {**dataclasses.asdict(self.step), "seconds": self.seconds, "outcome": self.text}


class Course:
    """Main thread only."""

    def __init__(self, seconds: float, braid: Installation, workload: plan.Workload, say: Callable[[str], None],
                 keep: Callable[[dict], None]):  # fmt: skip
        """`keep` is given each row as soon as there is one."""
        self.rows: list[dict] = []
        self.outcomes: list[Outcome] = []
        self.versions: dict[str, str] = {}
        self.has_namespaces: bool | None = None  # None: no cluster has been made
        self._deadline = Deadline(seconds)
        self._braid, self._workload = braid, workload
        self._say, self._keep = say, keep

    def elapsed(self) -> float:
        return self._deadline.seconds - self._deadline.left()

    def left(self) -> float:
        return max(0.0, self._deadline.left() - _RESERVE_S)

    def take(self, step: plan.Step, action: Callable[[Deadline], Iterable[dict]]) -> bool:
        """Whether the step was done. A step that fails does not end the run."""
        limit = min(step.limit_s, self.left())
        if limit < _STEP_SECONDS_MIN:
            self._end(step, 0.0, "no time left")
            return False
        begin, text = time.monotonic(), DONE
        try:
            for row in action(Deadline(limit)):
                self.rows.append(row)
                self._keep(row)
        except (SystemFailed, RunFailed) as failure:
            text = f"failed: {failure}"
        except Exception as error:  # A GPU is seldom at hand: a mistake in one test must not cost the others.
            text = f"failed: {error!r}"
        self._end(step, time.monotonic() - begin, text)
        return text == DONE

    def _end(self, step: plan.Step, seconds: float, text: str) -> None:
        self.outcomes.append(Outcome(step, seconds, text))
        self._say(f"{step}: {text} ({seconds:.1f} s)")

    def run(self, steps: Iterable[plan.Step]) -> None:
        for name, on_network in itertools.groupby(steps, lambda step: step.network):
            self._on_network(plan.NETWORKS[name], list(on_network))

    def _on_network(self, network: plan.Network, steps: list[plan.Step]) -> None:
        if self.left() < _STEP_SECONDS_MIN:
            self._leave_out(steps, "no time left")
            return
        try:
            cluster = Cluster(_shape(network), self._braid, may_be_loopback=True)
        except Exception as failure:  # of whatever kind: the other networks have their turn
            self._end(_of_cluster(network), 0.0, f"failed: {failure}")
            self._leave_out(steps, "not run: no cluster")
            return
        self.has_namespaces = cluster.state.mode == NAMESPACES
        try:
            for system, of_system in itertools.groupby(steps, lambda step: step.system):
                self._of_system(Measurement(cluster, network, system, self._braid, self._workload), list(of_system))
        finally:
            complaint = _ended(cluster)
        if complaint:
            self._end(_of_cluster(network), 0.0, f"failed: {complaint}")

    def _of_system(self, measured: Measurement, steps: list[plan.Step]) -> None:
        grace_s = _GRACE_S
        try:
            for place, step in enumerate(steps):
                if measured.needs_start:
                    start = dataclasses.replace(step, test="start", limit_s=self._workload.start_limit_s)
                    if not self.take(start, measured.start):
                        self._leave_out(steps[place:], "not run: it did not start")
                        return
                    self.versions |= measured.versions
                grace_s = _GRACE_S
                if not self.take(step, lambda deadline, test=step.test: measured.take(test, deadline)):
                    grace_s = _GRACE_AFTER_FAILURE_S
                    measured.close(grace_s)  # its ranks may wait for each other: the next test has new ones
        finally:
            measured.close(grace_s)

    def _leave_out(self, steps: Iterable[plan.Step], why: str) -> None:
        for step in steps:
            self._end(step, 0.0, why)


def _ended(cluster: Cluster) -> str | None:
    try:
        return cluster.end()
    except (OSError, subprocess.SubprocessError) as error:
        return f"scripts/cluster does not end: {error}"


def _of_cluster(network: plan.Network) -> plan.Step:
    return plan.Step(network.name, "", "cluster", 0.0)


def _shape(network: plan.Network) -> argparse.Namespace:
    return argparse.Namespace(
        nodes=plan.NODES, ranks_per_node=1, nic_mbit=network.nic_mbit, flow_mbit=network.flow_mbit,
        delay=Delay(), settings=[],
    )  # fmt: skip
