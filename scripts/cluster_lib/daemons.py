# SPDX-License-Identifier: Apache-2.0
"""One braidd per node: start, wait until it serves, report its death, stop."""

import grp
import os
import secrets
import signal
import socket
import subprocess
import time

from . import processes
from .errors import ClusterError
from .signals import Signals
from .state import Cluster, Node

READY_TIMEOUT_S = 20.0
CONTROL_PORT = 7410
METRICS_PORT = 9431
_POLL_S = 0.05
_TAIL_LINES = 30


def write_cluster_key(directory: str) -> str:
    path = os.path.join(directory, "cluster.key")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32) + "\n")
    return path


class Daemon:
    """A running braidd. Main thread only."""

    def __init__(self, node: Node, command: list[str], env: dict[str, str]):
        self.node = node
        self.reported = False
        self._had_to_be_killed = False
        with open(node.log, "ab") as log:
            self.process = processes.spawn(
                command, env=env, death_signal=signal.SIGTERM, stdout=log, stderr=subprocess.STDOUT
            )
        node.daemon_pid, node.daemon_command = self.process.pid, command

    def serves(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1)
            try:
                probe.connect(self.node.socket)
            except OSError:
                return False
        return True

    def obituary(self) -> str:
        """How it ended, and its last words."""
        ended = self.process.poll()
        how = "still runs" if ended is None else f"ended: {processes.describe_exit(ended)}"
        if self._had_to_be_killed:
            how = f"did not end within {processes.TERMINATE_GRACE_S:g} s of SIGTERM and was killed"
        with open(self.node.log, encoding="utf-8", errors="replace") as log:
            tail = log.read().splitlines()[-_TAIL_LINES:]
        lines = [f"  | {line}" for line in tail] or ["  | (its log is empty)"]
        return "\n".join(
            [f"braidd of {self.node.name} (pid {self.process.pid}) {how}; end of its log:", *lines]
        )

    def crashed(self) -> bool:
        """Ended by an error of its own; a daemon that somebody stopped or killed did not crash."""
        ended = self.process.poll()
        return self._had_to_be_killed or ended not in (None, 0, -signal.SIGKILL, -signal.SIGTERM)

    def wait_or_kill(self, timeout_s: float) -> None:
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._had_to_be_killed = True
            processes.signal_group(self.process, signal.SIGKILL)
            self.process.wait()


def start(
    cluster: Cluster,
    program: str,
    config: str | None,
    settings: list[str],
    racks: int | None,
    env: dict[str, str],
    into: list[Daemon],
) -> None:
    """Appends each daemon as soon as it runs, so that the caller can stop a half-started set."""
    key = write_cluster_key(cluster.directory)
    group = grp.getgrgid(os.getegid()).gr_name
    for node in cluster.nodes:
        command = [program, *(["--config", config] if config else [])]
        own = {
            "node.name": node.name,
            "node.address": node.address,
            "control.port": CONTROL_PORT,
            "control.listen": node.address,
            "control.cluster_key_file": key,
            "client.socket": node.socket,
            "client.group": group,
            "metrics.address": node.address,
            "metrics.port": METRICS_PORT,
            "transport.rails": f"[{node.interface}]",
        }
        if racks is not None:
            own["node.rack"] = f"rack{node.index % racks}"
        for setting in [f"{name}={value}" for name, value in own.items()] + settings:
            command += ["--set", setting]
        into.append(Daemon(node, node.enter(command), env))


def wait_until_ready(daemons: list[Daemon], signals: Signals) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    waiting = list(daemons)
    while True:
        for daemon in waiting:
            if daemon.process.poll() is not None:
                daemon.reported = True
                raise ClusterError(f"a daemon did not start\n{daemon.obituary()}")
        waiting = [daemon for daemon in waiting if not daemon.serves()]
        if not waiting:
            return
        if time.monotonic() > deadline:
            raise ClusterError(
                f"a daemon did not accept a connection at {waiting[0].node.socket} within "
                f"{READY_TIMEOUT_S:g} s\n{waiting[0].obituary()}"
            )
        signals.wait(_POLL_S)


def stop(daemons: list[Daemon]) -> None:
    """SIGTERM for all, SIGKILL for those that have not drained in time."""
    for daemon in daemons:
        processes.signal_group(daemon.process, signal.SIGTERM)
    deadline = time.monotonic() + processes.TERMINATE_GRACE_S
    for daemon in daemons:
        daemon.wait_or_kill(max(0.0, deadline - time.monotonic()))
