# SPDX-License-Identifier: Apache-2.0
"""What a daemon holds and has sent at one moment: from /proc, from its sockets, and from itself."""

import collections
import dataclasses
import json
import os
import re
import subprocess
import time

from cluster_lib.daemons import CONTROL_PORT, METRICS_PORT
from cluster_lib.state import Node

from .. import cpu
from ..errors import SystemFailed

_PATIENCE_S = 30
_KINDS = {"socket:": "socket", "anon_inode:[eventpoll]": "epoll", "anon_inode:[eventfd]": "eventfd"}
_MESSAGES = "braid_control_messages_total"


@dataclasses.dataclass
class Traffic:
    """The traffic of the control connections with one other node."""

    bytes_sent: int = 0
    bytes_received: int = 0
    packets_sent: int = 0  # with payload
    packets_received: int = 0


@dataclasses.dataclass(frozen=True)
class Snapshot:
    seconds: float  # of a clock
    cpu_seconds: float
    memory_bytes: int  # anonymous
    resident_bytes: int
    threads: int
    descriptors: collections.Counter  # by kind
    control: dict[str, Traffic]  # by the other node's address
    sockets: collections.Counter  # control, flow, listening
    counters: dict[str, int]
    flows: int  # that the daemon has, to and from others
    peers: int

    def messages(self, direction: str) -> int:
        return self.counters[f"{_MESSAGES}.{direction}"]

    @property
    def operations(self) -> int:
        return self.counters["braid_operations_total.all-reduce"]


def take(node: Node, braidctl: str) -> Snapshot:
    process = f"/proc/{node.daemon_pid}"
    try:
        said = json.loads(_run([braidctl, "--socket", node.socket, "status", "--json"]))
        traffic, sockets = parse_sockets(_run(node.enter(["ss", "-atinHO"])))
        memory = _read(f"{process}/smaps_rollup")
        return Snapshot(
            seconds=time.monotonic(),
            cpu_seconds=cpu.seconds_of([node.daemon_pid]),
            memory_bytes=_kilobytes(memory, "Anonymous"),
            resident_bytes=_kilobytes(memory, "Rss"),
            threads=len(os.listdir(f"{process}/task")),
            descriptors=_descriptors(f"{process}/fd"),
            control=traffic,
            sockets=sockets,
            counters=said["counters"],
            flows=sum(flow["state"] == "open" for flow in said["flows"]),
            peers=len(said["peers"]),
        )
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        raise SystemFailed(f"cannot look at the daemon of {node.name}: {error!r}") from None


def _run(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    if done.returncode != 0:
        raise ValueError(f"{argv[0]}: {done.stderr.strip()}")
    return done.stdout


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _kilobytes(text: str, field: str) -> int:
    return int(re.search(rf"^{field}:\s+(\d+) kB$", text, re.M)[1]) << 10


def _descriptors(folder: str) -> collections.Counter:
    found = collections.Counter()
    for name in os.listdir(folder):
        try:
            target = os.readlink(os.path.join(folder, name))
        except OSError:
            continue  # closed meanwhile
        found[next((kind for start, kind in _KINDS.items() if target.startswith(start)), "other")] += 1
    return found


def parse_sockets(text: str) -> tuple[dict[str, Traffic], collections.Counter]:
    """What `ss -atinHO` says: traffic by peer, and how many sockets of each kind there are."""
    traffic: dict[str, Traffic] = collections.defaultdict(Traffic)
    kinds = collections.Counter(control=0, flow=0, listening=0)
    for line in text.splitlines():
        state, _, _, local, remote = line.split()[:5]
        if state == "LISTEN":
            kinds["listening"] += 1
            continue
        if state != "ESTAB":
            continue
        ports = {int(address.rpartition(":")[2]) for address in (local, remote)}
        if METRICS_PORT in ports:
            continue
        if CONTROL_PORT not in ports:
            kinds["flow"] += 1
            continue
        kinds["control"] += 1
        one = traffic[remote.rpartition(":")[0]]
        one.bytes_sent += _number(line, "bytes_sent")
        one.bytes_received += _number(line, "bytes_received")
        one.packets_sent += _number(line, "data_segs_out")
        one.packets_received += _number(line, "data_segs_in")
    return dict(traffic), kinds


def _number(line: str, field: str) -> int:
    """Fields that are 0 are left out."""
    found = re.search(rf"\b{field}:(\d+)", line)
    return int(found[1]) if found else 0
