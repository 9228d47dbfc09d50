# SPDX-License-Identifier: Apache-2.0
"""braid, measured by braid-bench: a job of its own for each repeat of each size."""

import argparse
import itertools
import json
import subprocess

from .. import cpu
from ..cluster import Cluster
from ..errors import Deadline, SystemFailed
from ..paths import Installation
from ..programs import Program, last_words, stop_all
from . import figures
from .cases import Case

_TINY_BYTES = 4
_CHECKS = 1
_VERSION_TIMEOUT_S = 10


class Braid:
    def __init__(self, name: str, cluster: Cluster, options: argparse.Namespace, braid: Installation):
        self.name = name
        self.versions: dict[str, str] = {}
        self.flows = 0  # from a node to the next one
        self._cluster, self._options = cluster, options
        self._bench = braid.program("braid-bench")
        self._numbers = itertools.count(1)
        self._programs: list[Program] = []

    def start(self) -> None:
        """Opens the daemons' links to each other, and asks what they are."""
        [(first, _, _)] = self._run([_TINY_BYTES], 1)
        if "checking_cpu_seconds" not in first:
            raise SystemFailed("this braid-bench does not tell checking_cpu_seconds: build it again")
        self.flows = first["flows"]
        self.versions = {self.name: self._version()}
        transport = first["transport"].partition(",")[0].split()
        if len(transport) == 2:
            self.versions[transport[0]] = transport[1]

    def _version(self) -> str:
        try:
            done = subprocess.run(
                [self._bench, "--version"], capture_output=True, text=True,
                timeout=_VERSION_TIMEOUT_S, check=True,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return "unknown"
        return done.stdout.strip().rpartition(" ")[2]

    def measure(self, case: Case) -> figures.Sample:
        # The tiny size opens the job; from its line to that of `case` the daemons do nothing but
        # the warm-up, the iterations and the checked operations of `case`, and the machine that and the checking.
        iterations = self._options.iterations
        [_, (measured, daemons, machine)] = self._run([_TINY_BYTES, case.bytes], iterations)
        measured_part = iterations / (iterations + self._options.warmup + _CHECKS)
        if machine is not None:
            machine = max(0.0, machine - measured["checking_cpu_seconds"]) * measured_part
        return figures.Sample(
            measured["median_seconds"],
            measured["p99_seconds"],
            measured["cpu_seconds"] + daemons * measured_part,
            machine,
        )

    def count(self, case: Case) -> dict:
        """What one operation makes daemons, trainers and the kernel do: braid-bench --counts."""
        [(measured, _, _)] = self._run([case.bytes], self._options.iterations, "--counts")
        return measured["counts"]

    def _run(self, sizes: list[int], iterations: int, *others: str) -> list[tuple[dict, float, float | None]]:
        """Per size what braid-bench said of it, and what the daemons and the machine did meanwhile."""
        deadline = Deadline(self._options.timeout)
        argv = [self._bench, "all_reduce", "--json", "--sizes", ",".join(map(str, sizes))]
        argv += ["--iters", str(iterations), "--warmup_iters", str(self._options.warmup), "--check", str(_CHECKS)]
        argv += ["--timeout", str(self._options.timeout), *others]
        job = f"{self._cluster.state.job}-{next(self._numbers)}"
        self._programs = self._cluster.start_ranks(self.name, argv, BRAID_JOB=job)
        daemons = self._cluster.daemon_pids()
        lines = self._programs[0].lines(deadline)
        found = []
        before, machine = cpu.seconds_of(daemons), cpu.Machine()
        for line in itertools.islice(lines, len(sizes)):
            used, busy = cpu.seconds_of(daemons), machine.busy_seconds()
            found.append((json.loads(line), used - before, busy))
            before, machine = used, cpu.Machine()
        codes = [program.wait(deadline) for program in self._programs]
        if len(found) < len(sizes) or any(codes):
            text = f"no end within {deadline.seconds:g} s" if None in codes else "braid-bench failed"
            stop_all(self._programs, grace_s=1.0)
            raise SystemFailed(f"{text}\n{last_words(self._programs)}")
        self.close()
        return found

    def close(self) -> None:
        stop_all(self._programs, grace_s=1.0)
        self._programs = []
