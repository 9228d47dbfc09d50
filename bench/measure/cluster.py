# SPDX-License-Identifier: Apache-2.0
"""The emulated cluster that the systems share: one run of scripts/cluster. An earlier braid has one of its own."""

import argparse
import os
import signal
import subprocess
import tempfile

from cluster_lib import delay_options, processes, ranks, state

from .cpu import MARKER
from .errors import RunFailed, Deadline
from .paths import ROOT, Installation
from .programs import Program

_START_S = 60.0
_END_S = 30.0
# One on each node keeps the cluster up: it says where it is, and waits for a line in its fifo. It has opened the fifo
# before it says so: who writes to one that nobody has opened gets an error.
_HOLD = (
    'end="$BRAID_CLUSTER_DIR/end$RANK" && mkfifo "$end" && exec 3<>"$end" && echo "$BRAID_CLUSTER_DIR" && '
    "read -r line <&3"
)


def command(options: argparse.Namespace, braid: Installation | None = None) -> list[str]:
    """With the daemons of that braid, if any. `options`: as options.parse() returns them."""
    line = [os.path.join(ROOT, "scripts", "cluster"), "--nodes", str(options.nodes)]
    if options.nic_mbit:
        line += ["--nic-mbit", options.nic_mbit]
    if options.flow_mbit:
        line += ["--flow-mbit", options.flow_mbit]
    if options.delay.is_wanted():
        line += delay_options.arguments(options.delay)
    if braid is not None:
        line += ["--daemon", braid.program("braidd")]
        line += [part for setting in options.settings for part in ("--set", setting)]
    else:
        line.append("--no-daemons")
    return [*line, "--", "sh", "-c", _HOLD]


class Cluster:
    """Up from construction until end(). Main thread only."""

    def __init__(self, options: argparse.Namespace, braid: Installation | None = None, may_be_loopback: bool = False):
        """Where namespaces are not allowed, nodes of an unshaped network may share the loopback interface, if what is
        measured makes sense there."""
        self.ranks_per_node = options.ranks_per_node
        self._said = tempfile.TemporaryFile("w+", errors="replace")
        self._tool = processes.spawn(
            command(options, braid),
            env=dict(os.environ),
            death_signal=signal.SIGTERM,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        try:
            self.state = state.load(self._directory(options.nodes))
            if self.state.mode != state.NAMESPACES and not may_be_loopback:
                raise RunFailed("network namespaces are not allowed here: nothing to compare on")
        except BaseException:
            self._tool.terminate()
            self._tool.wait(_END_S)
            raise

    def _directory(self, nodes: int) -> str:
        deadline = Deadline(_START_S)
        lines = Program.lines_of(self._tool.stdout, deadline)
        for _ in range(nodes):
            line = next(lines, None)
            if line is None:
                raise RunFailed(f"the cluster did not start:\n{self._words()}")
        return line.partition("] ")[2].strip()

    @property
    def nodes(self) -> list[state.Node]:
        return self.state.nodes

    @property
    def world_size(self) -> int:
        return len(self.nodes) * self.ranks_per_node

    @property
    def variable(self) -> str:
        """In the environment of every process of this cluster, and of no other."""
        return f"{processes.MARKER}={self.state.id}"

    def daemon_pids(self) -> list[int]:
        return [node.daemon_pid for node in self.nodes if node.daemon_pid is not None]

    def start(
        self, node: state.Node, system: str, argv: list[str], local_rank: int = 0, **variables: str
    ) -> Program:
        """A process of a system on a node."""
        env = ranks.environment(self.state, node, local_rank, self.ranks_per_node)
        env.pop("BRAID_ENABLE", None)  # it would turn gloo into braid
        env["PYTHONPATH"] = os.path.join(ROOT, "bench")  # for `python -m measure...`
        env.update(variables)
        env[MARKER] = system
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        return Program(node.enter(argv), env)

    def start_ranks(self, system: str, argv: list[str], **variables: str) -> list[Program]:
        """The same command once per rank, in the order of ranks."""
        return [
            self.start(node, system, argv, local_rank, **variables)
            for node in self.nodes
            for local_rank in range(self.ranks_per_node)
        ]

    def check(self) -> None:
        if self._tool.poll() is not None:
            raise RunFailed(f"the cluster has ended:\n{self._words()}")

    def end(self) -> str | None:
        """Takes the cluster down; a complaint if a daemon or the tool did not end well."""
        if self._tool.poll() is None:
            self._release()
        try:
            code = self._tool.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._tool.terminate()
            code = self._tool.wait(_END_S)
        self._tool.stdout.close()
        return None if code == 0 else f"scripts/cluster: exit code {code}:\n{self._words()}"

    def _release(self) -> None:
        try:
            for node in self.nodes:
                path = os.path.join(self.state.directory, f"end{node.index}")
                descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                os.write(descriptor, b"\n")
                os.close(descriptor)
        except OSError:  # nobody reads it any more
            self._tool.terminate()

    def _words(self) -> str:
        self._said.seek(0)
        return self._said.read().strip()
