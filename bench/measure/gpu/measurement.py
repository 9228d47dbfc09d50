# SPDX-License-Identifier: Apache-2.0
"""The tests of one system on one network: what its workers are asked, and the rows that come of their answers."""

import statistics
import time

from .. import cpu
from ..cluster import Cluster
from ..compare import wire
from ..compare.cases import Case
from ..compare.figures import Sample, Shape, bus_gbit_per_second, p99, row
from ..errors import Deadline, SystemFailed
from ..group import Group, slowest
from ..paths import Installation
from . import figures, plan, systems

_COMMUNICATORS = (1, 2, 4, 8)
_WARM_UP_STEPS = 4
_BESIDE_SECONDS = 0.25  # shorter than the collective, on a capped network
_WIRE_CONNECTIONS = 8
_COPIES = 4


class Measurement:
    """Main thread only. The workers stay up between tests, until one fails."""

    def __init__(
        self, cluster: Cluster, network: plan.Network, system: str, braid: Installation, workload: plan.Workload
    ):
        self.versions: dict[str, str] = {}
        self._cluster, self._network, self._system = cluster, network, system
        self._braid, self._work = braid, workload
        self._group: Group | None = None

    @property
    def needs_start(self) -> bool:
        return self._group is None and self._system != plan.IPERF

    def start(self, deadline: Deadline) -> list[dict]:
        begin = time.monotonic()
        self._group = systems.start(self._system, self._cluster, self._braid, self._work.device, deadline.left())
        self.versions = self._group.versions
        return [self._row("start", seconds=time.monotonic() - begin)]

    def close(self, grace_s: float) -> None:
        if self._group is not None:
            self._group.close(grace_s)
        self._group = None

    def take(self, test: str, deadline: Deadline) -> list[dict]:
        """The test's rows; SystemFailed if it has none."""
        self._cluster.check()
        if self._system == plan.IPERF:
            return self._wire()
        if test in ("ddp", "ddp-buckets", "fsdp"):
            return self._steps(test, deadline)
        tests = {
            "collectives": self._collectives,
            "rates": self._rates,
            "copies": self._copies,
            "beside": self._beside,
            "communicators": self._of_communicators,
        }
        return tests[test](deadline)

    def _row(self, test: str, **values) -> dict:
        return {"test": test, "network": self._network.name, "system": self._system, **values}

    def _ask(self, deadline: Deadline, do: str, **task) -> list[dict]:
        """The ranks' answers, rank 0's first."""
        answers = sorted(self._group.ask({"do": do, **task}, deadline), key=lambda one: one["rank"])
        if errors := [f"rank {one['rank']}: {one['error']}" for one in answers if "error" in one]:
            raise SystemFailed("; ".join(errors))
        return answers

    def _collectives(self, deadline: Deadline) -> list[dict]:
        """Each rank sees its own results: the worst of them counts."""
        answers = self._ask(deadline, "collectives")
        worst = max(answers, key=lambda one: (one["wrong"], one["refused"]))
        return [self._row("collectives", **{name: worst[name] for name in ("done", "wrong", "refused", "named")})]

    def _rates(self, deadline: Deadline) -> list[dict]:
        sizes = {plan.OPEN: self._work.sizes_open, plan.UNEVEN: (self._work.largest,)}
        return [self._rate(size, deadline) for size in sizes.get(self._network.name, self._work.sizes_capped)]

    def _rate(self, size: int, deadline: Deadline) -> dict:
        first = slowest(self._ask(deadline, "all-reduce", bytes=size, iterations=2), "seconds")[-1]
        # A connection's window grows, and braid learns what each flow carries.
        warm_up = figures.iterations_for(first, self._work.seconds_per_test / 4, self._work.iterations_max)
        self._ask(deadline, "all-reduce", bytes=size, iterations=warm_up)
        iterations = figures.iterations_for(first, self._work.seconds_per_test, self._work.iterations_max)
        pids = cpu.processes_of(self._system, self._cluster.variable)
        if self._system == plan.BRAID:
            pids += self._cluster.daemon_pids()
        before, machine = cpu.seconds_of(pids), cpu.Machine()
        seconds = slowest(self._ask(deadline, "all-reduce", bytes=size, iterations=iterations), "seconds")
        sample = Sample(
            statistics.median(seconds), p99(seconds), cpu.seconds_of(pids) - before, machine.busy_seconds()
        )
        shape = Shape(plan.NODES, 1, iterations, self._network.nic_gbit_per_second)
        return {"test": "rates", "network": self._network.name, **row(self._system, Case(size), [sample], shape)}

    def _of_communicators(self, deadline: Deadline) -> list[dict]:
        rows = []
        for count in _COMMUNICATORS:
            size = self._work.largest // (4 * count) * 4 * count
            answers = self._ask(deadline, "communicators", count=count, bytes=size, iterations=4)
            seconds = statistics.median(slowest(answers, "seconds"))
            bus = bus_gbit_per_second(Case(size), plan.NODES, seconds)
            rows.append(self._row("communicators", count=count, bytes=size, median_seconds=seconds,
                                  bus_gbit_per_second=bus))  # fmt: skip
        return rows

    def _copies(self, deadline: Deadline) -> list[dict]:
        rates = self._ask(deadline, "copies", bytes=self._work.largest, iterations=_COPIES)[0]["rates"]
        return [self._row("copies", bytes=self._work.largest, **rates)]

    def _beside(self, deadline: Deadline) -> list[dict]:
        task = {"product": self._work.product, "seconds": _BESIDE_SECONDS}
        self._ask(deadline, "beside", bytes=0, **task)  # warms up
        alone = self._ask(deadline, "beside", bytes=0, **task)[0]["rate"]
        with_traffic = self._ask(deadline, "beside", bytes=self._work.gradient_bytes, **task)[0]
        return [self._row("beside", products_alone_per_second=alone, products_beside_per_second=with_traffic["rate"],
                          ratio=with_traffic["rate"] / alone, outlasted=with_traffic["outlasted"])]  # fmt: skip

    def _steps(self, way: str, deadline: Deadline) -> list[dict]:
        shape = {"width": self._work.width, "layers": self._work.layers, "rows": self._work.rows}
        self._ask(deadline, "prepare", way=way, warmup=_WARM_UP_STEPS, **shape)
        first = slowest(self._ask(deadline, "steps", count=1, alone=False), "seconds")[0]
        count = figures.iterations_for(first, self._work.seconds_per_test, self._work.iterations_max)
        whole = self._ask(deadline, "steps", count=count, alone=False)
        alone = self._ask(deadline, "steps", count=count, alone=True)
        sent = figures.fsdp_bytes if way == "fsdp" else figures.ddp_bytes
        nic = self._network.nic_gbit_per_second
        wire_seconds = sent(self._work.gradient_bytes, plan.NODES) * 8 / (nic * 1e9) if nic else None
        made = self._row(way, **figures.step_row(whole, alone, wire_seconds))
        if len({one["digest"] for one in whole}) != 1:
            raise SystemFailed("ranks have different weights after the same steps")
        return [made]

    def _wire(self) -> list[dict]:
        machine = cpu.Machine()
        measured = wire.measure(self._cluster, _WIRE_CONNECTIONS)
        busy = machine.busy_seconds()
        gigabytes = sum(measured.gbit_per_second) / 8 * wire.SECONDS
        return [self._row("wire", gbit_per_second=measured.mean, connections=measured.connections,
                          machine_seconds_per_gigabyte=busy / gigabytes if busy else None)]  # fmt: skip
