# SPDX-License-Identifier: Apache-2.0
"""Runs a script of trainers/ with scripts/cluster and collects what each rank says."""

from __future__ import annotations

import functools
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TRAINERS = Path(__file__).resolve().parent / "trainers"
CLUSTER = str(REPOSITORY / "scripts" / "cluster")
MARK = "RESULT "
DEADLINE_S = 600

COLD = (sys.executable,)
# Nodes have no networks of their own.
ON_LOOPBACK = os.geteuid() != 0 or "--loopback" in os.environ.get("BRAID_TEST_CLUSTER_OPTIONS", "")

# For what a second version of torch cannot change: scripts/check.sh leaves it out there.
once = pytest.mark.once
# The shapes that every comparison runs on: ranks that share nodes, and ranks apart, which torch does not see.
SHAPES = ((2, 2), pytest.param(4, 1, marks=once))


class Run:
    """What a run left: exit code, all output, and the results that ranks reported."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.exit_code = done.returncode
        self.output = done.stdout + done.stderr
        self.results: dict[int, Any] = {}
        for line in self.output.splitlines():
            where = line.find(MARK)
            if where >= 0:
                result = json.loads(line[where + len(MARK) :])
                self.results[result["rank"]] = result

    def expect(self, ranks: int) -> list[Any]:
        """The results of all ranks, in order, of a run that went well."""
        assert self.exit_code == 0, f"{self.output}\nexit code {self.exit_code}"
        return self.reported(ranks)

    def reported(self, ranks: int) -> list[Any]:
        """The results of all ranks, in order, however the run ended."""
        assert sorted(self.results) == list(range(ranks)), self.output
        return [self.results[rank] for rank in range(ranks)]


@functools.cache
def warm_start() -> tuple[str, ...]:
    """A launcher that stands for `python`. Its processes end with this one."""
    script = str(Path(__file__).with_name("warm_starts.py"))
    folder = tempfile.TemporaryDirectory(prefix="braid-warm-")
    path = f"{folder.name}/socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        process = subprocess.Popen(
            [sys.executable, script, str(listener.fileno())], pass_fds=[listener.fileno()],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            env={"PYTHONFAULTHANDLER": "1", **os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    warm_start.kept = folder, process
    return sys.executable, "-S", script, path


def run(
    trainer: str,
    *arguments: str,
    nodes: int = 1,
    ranks_per_node: int = 2,
    launcher: tuple[str, ...] | None = None,
    environment: Mapping[str, str] | None = None,
    options: tuple[str, ...] = (),
) -> Run:
    """`launcher trainers/TRAINER ARGUMENTS` once per rank; by itself with torch already imported."""
    if launcher is None:  # What torch reads when it is imported needs a process of its own.
        launcher = COLD if any(name.startswith("TORCH") for name in environment or ()) else warm_start()
    # More options for all runs of a test session, such as --loopback where namespaces are refused.
    more = shlex.split(os.environ.get("BRAID_TEST_CLUSTER_OPTIONS", ""))
    command = [
        CLUSTER, "--nodes", str(nodes), "--ranks-per-node", str(ranks_per_node),
        "--timeout", str(DEADLINE_S), *more, *options, "--",
        *launcher, str(TRAINERS / trainer), *arguments,
    ]  # fmt: skip
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S + 30,
        check=False,
        env={"PYTHONFAULTHANDLER": "1", **os.environ, **(environment or {})},
    )
    return Run(done)


def script(name: str) -> str:
    """An entry point that was installed along with the package under test."""
    return str(Path(sys.executable).parent / name)
