# SPDX-License-Identifier: Apache-2.0
"""One point, a trace at a bandwidth: a cluster of its own, the advice, and the steps with each codec."""

import argparse
import json
import os
import subprocess
import time

from cluster_lib.state import Delay
from compare_lib.cluster import Cluster
from compare_lib.errors import CompareError, Deadline, SystemFailed
from compare_lib.paths import ROOT, installation_of
from compare_lib.programs import Program

from .options import FLOWS_PER_NIC, ScaledTrace

PLAIN = "none"
_ASKED_AGAIN_S = 0.5
_ENDLESS_STEPS = 1_000_000
# What a tuner tries would be measured, too.
_WITHOUT_TUNING = "tune.mode=off"


def rates_of(codecs: list[str], options: argparse.Namespace, path: str) -> None:
    """Writes what one core does, of all sizes that the advisor itself measures."""
    bench = installation_of(ROOT, options.build).program("braid-bench")
    with open(path, "wb") as file:
        for size in ("64KiB", "1MiB", "16MiB", "64MiB"):
            line = [bench, "codecs", "--json", "--bytes", size, "--nodes", str(options.nodes)]
            line += [part for codec in codecs for part in ("--codec", codec)]
            done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            if done.returncode != 0:
                raise CompareError(f"braid-bench codecs: {done.stderr.decode(errors='replace').strip()}")
            file.write(done.stdout)


class Point:
    def __init__(self, trace: ScaledTrace, nic_mbit: int, rates: str, options: argparse.Namespace):
        self._trace, self._nic_mbit, self._rates, self._options = trace, nic_mbit, rates, options
        self._braid = installation_of(ROOT, options.build)
        self._jobs = 0

    def run(self) -> dict:
        """The advice, and the measured step of each codec, in seconds; CompareError if one is missing."""
        shape = argparse.Namespace(
            nodes=self._options.nodes,
            ranks_per_node=1,
            nic_mbit=str(self._nic_mbit) if self._nic_mbit else None,
            flow_mbit=str(self._nic_mbit // FLOWS_PER_NIC) if self._nic_mbit else None,
            delay=Delay(),
            settings=[_WITHOUT_TUNING, *self._options.settings],
        )
        cluster = Cluster(shape, self._braid)
        try:
            measured = {PLAIN: self._measure(PLAIN, cluster)}
            advice = self._ask(cluster)
            measured |= {codec: self._measure(codec, cluster) for codec in self._options.codecs}
        except SystemFailed as failure:
            raise CompareError(str(failure)) from None
        finally:
            complaint = cluster.end()
        if complaint:
            raise CompareError(complaint)
        return {"advice": advice, "measured": measured}

    def _start(self, codec: str, steps: int, cluster: Cluster) -> list[Program]:
        self._jobs += 1
        line = [self._braid.program("braid-bench"), "replay", "--planner", "live", "--json"]
        line += ["--trace", self._trace.path, "--time-scale", str(self._trace.scale)]
        line += ["--codec", codec, "--steps", str(steps)]
        port = str(cluster.state.master_port + self._jobs)
        return cluster.start_ranks(codec, line, BRAID_JOB=self._job(), MASTER_PORT=port)

    def _job(self) -> str:
        return f"advice{self._jobs}"

    def _measure(self, codec: str, cluster: Cluster) -> float:
        cluster.check()
        deadline = Deadline(self._options.timeout)
        programs = self._start(codec, self._options.steps, cluster)
        try:
            lines = list(programs[0].lines(deadline))
            for program in programs:
                if program.wait(deadline) != 0:
                    raise SystemFailed(f"replay with {codec}: {program.last_words()}")
        finally:
            for program in programs:
                program.stop(0)
        return json.loads(lines[-1])["iteration_seconds"]

    def _ask(self, cluster: Cluster) -> dict:
        """As an operator does, on rank 0's node, while the job runs."""
        programs = self._start(PLAIN, _ENDLESS_STEPS, cluster)
        try:
            deadline = Deadline(self._options.timeout)
            advice = None
            while advice is None:
                if deadline.is_over():
                    raise CompareError(f"job {self._job()} is too slow: --timeout is not enough")
                for program in programs:
                    if program.has_ended():
                        raise SystemFailed(f"replay: {program.last_words()}")
                time.sleep(_ASKED_AGAIN_S)
                if self._steps(cluster) >= 2 * self._options.steps:
                    advice = self._advice(cluster)
            return advice
        finally:
            for program in programs:
                program.stop(0)

    def _advice(self, cluster: Cluster) -> dict | None:
        """None as long as the daemons have no cost to advise from."""
        said = self._braidctl(
            cluster,
            *("advise", "--job", self._job(), "--format", "json", "--rates", self._rates),
            *("--codecs", ",".join(self._options.codecs)),
            *("--encode-threads", str(self._options.encode_threads)),
        )
        if said.returncode == 0:
            return json.loads(said.stdout)
        if "no cost is fitted yet" in said.stderr:
            return None
        raise CompareError(said.stderr.strip())

    def _steps(self, cluster: Cluster) -> int:
        said = self._braidctl(cluster, "plan", "--job", self._job(), "--format", "json")
        sets = json.loads(said.stdout)["sets"] if said.returncode == 0 else []
        return sets[0]["steps_measured"] if sets else 0

    def _braidctl(self, cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess:
        socket = cluster.nodes[0].socket
        return subprocess.run(
            [self._braid.program("braidctl"), "--socket", socket, *arguments],
            capture_output=True, text=True, timeout=self._options.timeout, check=False, env=dict(os.environ),
        )  # fmt: skip
