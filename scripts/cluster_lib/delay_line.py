# SPDX-License-Identifier: Apache-2.0
"""Delay and loss: one braid-delay-line in the place of the switch and its cables.

    node 0 [eth0] ─┐
    node 1 [eth0] ─┼─ braid-delay-line   (a process in the namespace ...-sw)
    node 2 [eth0] ─┘

Each eth0 is a TAP device whose other end the process holds. What a node sends passes its HTB, as it
would on a veth, and reaches the other node --delay-ms later.
"""

import dataclasses
import json
import os
import select
import signal
import subprocess
import time

from . import delay_options, names, processes, ranks
from .commands import run
from .errors import ClusterError
from .network import INTERFACE
from .state import Cluster, Delay

PROGRAM = "braid-delay-line"
# What a node has sent and has not arrived, at most: 2 Gbit/s for a quarter of a second.
QUEUE_MIB = 64
_START_TIMEOUT_S = 20.0
_REPORT_TIMEOUT_S = 5.0
# Frames that the process has not taken yet: 2 Gbit/s of full-sized packets for 25 ms.
_DEVICE_QUEUE_FRAMES = 4096


class DelayLine:
    """The process, from start() to stop(). Main thread only."""

    def __init__(self, program: str, delay: Delay):
        self._program, self._delay = program, delay
        self._process: subprocess.Popen | None = None
        self._cluster: Cluster | None = None

    def start(self, cluster: Cluster) -> None:
        """Makes the NICs of the nodes, whose namespaces exist."""
        self._cluster = cluster
        command = ["ip", "netns", "exec", cluster.switch, self._program, "--interface", INTERFACE]
        command += delay_options.arguments(self._delay)
        command += ["--queue-mib", str(QUEUE_MIB)]
        command += [os.path.join(names.NAMESPACES_DIR, node.namespace) for node in cluster.nodes]
        with open(self._log(), "ab") as log:
            self._process = processes.spawn(
                command,
                env=ranks.common_environment(cluster),
                death_signal=signal.SIGTERM,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        cluster.delay_line_pid = self._process.pid
        if self._line(_START_TIMEOUT_S) != "ready":
            raise ClusterError(f"the delay line did not start: {self._last_words()}")
        for node in cluster.nodes:
            queue = ["txqueuelen", str(_DEVICE_QUEUE_FRAMES)]
            run(["ip", "-n", node.namespace, "link", "set", node.interface, *queue])

    def check(self) -> None:
        """Raises an error if it has ended: the nodes are cut off."""
        if self._process is not None and self._process.poll() is not None:
            raise ClusterError(f"the delay line ended: {self._last_words()}")

    def stop(self) -> str | None:
        """Ends it; returns what it has counted, in words, or nothing if it did not tell."""
        if self._process is None:
            return None
        missed = sum(_missed(node.namespace) for node in self._cluster.nodes)
        processes.signal_group(self._process, signal.SIGTERM)
        text = self._line(_REPORT_TIMEOUT_S)
        processes.signal_group(self._process, signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()
        try:
            counts = Counts(**json.loads(text))
        except (ValueError, TypeError):
            return None
        return counts.in_words(missed)

    def _line(self, timeout_s: float) -> str:
        """The next line, or what came of it in time."""
        deadline, text = time.monotonic() + timeout_s, b""
        descriptor = self._process.stdout.fileno()
        while not text.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                break
            data = os.read(descriptor, 4096)
            if not data:
                break
            text += data
        return text.decode(errors="replace").strip()

    def _log(self) -> str:
        return os.path.join(self._cluster.directory, "delay_line.log")

    def _last_words(self) -> str:
        try:
            code = self._process.wait(1)
        except subprocess.TimeoutExpired:
            return f"no answer within {_START_TIMEOUT_S:g} s"
        with open(self._log(), encoding="utf-8", errors="replace") as log:
            said = log.read().strip()
        return "; ".join(filter(None, [processes.describe_exit(code), said]))


@dataclasses.dataclass(frozen=True)
class Counts:
    """What braid-delay-line says at its end."""

    frames: int
    bytes: int
    lost: int
    dropped: int
    refused: int

    def in_words(self, missed: int) -> str:
        parts = [f"{self.frames} frames arrived, {self.lost} packets were lost on purpose"]
        if self.dropped:
            parts.append(f"{self.dropped} frames dropped: {QUEUE_MIB} MiB of a node were under way")
        if missed:
            parts.append(f"{missed} frames dropped: the delay line was too slow for them")
        if self.refused:
            parts.append(f"{self.refused} frames dropped: for nobody, or not taken by a node")
        return "delay line: " + ", ".join(parts)


def _missed(namespace: str) -> int:
    """What the node's NIC has dropped because the process did not take it in time."""
    text = run(["ip", "-n", namespace, "-s", "-j", "link", "show", INTERFACE], may_fail=True)
    try:
        return json.loads(text)[0]["stats64"]["tx"]["dropped"]
    except (ValueError, LookupError):
        return 0
