# SPDX-License-Identifier: Apache-2.0
"""What a running cluster is made of, and its file cluster.json in the run directory."""

import dataclasses
import json
import os

from .errors import ClusterError

FILE_NAME = "cluster.json"
NAMESPACES, LOOPBACK = "namespaces", "loopback"


@dataclasses.dataclass
class Node:
    name: str
    index: int
    address: str
    interface: str
    namespace: str | None  # None in loopback mode
    directory: str
    socket: str
    log: str
    daemon_pid: int | None = None
    daemon_command: list[str] | None = None  # to start it again after a test has killed it
    ranks: dict[str, int] = dataclasses.field(default_factory=dict)  # rank -> pid

    def enter(self, argv: list[str]) -> list[str]:
        """The command line that runs argv on this node."""
        return argv if self.namespace is None else ["ip", "netns", "exec", self.namespace, *argv]


@dataclasses.dataclass(frozen=True)
class Delay:
    """What happens to a packet on its way from a node to another."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0  # more or less than that
    loss_percent: float = 0.0
    seed: int = 1

    def is_wanted(self) -> bool:
        return self.delay_ms > 0 or self.loss_percent > 0

    def in_words(self) -> str:
        parts = []
        if self.delay_ms:
            jitter = f" ± {self.jitter_ms:g}" if self.jitter_ms else ""
            parts.append(f"delay {self.delay_ms:g}{jitter} ms (round trip {2 * self.delay_ms:g} ms)")
        if self.loss_percent:
            parts.append(f"loss {self.loss_percent:g} %")
        return ", ".join(parts)


@dataclasses.dataclass
class Cluster:
    id: str
    directory: str
    mode: str
    index: int  # which subnet: 10.77.<index>.0/24, fd77:<index>::/64 or 127.0.<index>.0/24
    master_port: int
    job: str
    nodes: list[Node]
    switch: str | None = None  # the bridge's namespace
    nic_mbit: float | None = None
    flow_mbit: list[float] = dataclasses.field(default_factory=list)
    delay: Delay = dataclasses.field(default_factory=Delay)
    delay_line_pid: int | None = None
    keep_logs: str | None = None
    ipv6: bool = False
    tool_pid: int = dataclasses.field(default_factory=os.getpid)

    def save(self) -> None:
        """Readers see the old file or the new one, never half of one."""
        path = os.path.join(self.directory, FILE_NAME)
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(dataclasses.asdict(self), file, indent=2)
            file.write("\n")
        os.replace(path + ".new", path)


def load(directory: str) -> Cluster:
    path = os.path.join(directory, FILE_NAME)
    try:
        with open(path, encoding="utf-8") as file:
            fields = json.load(file)
        fields["nodes"] = [Node(**node) for node in fields["nodes"]]
        fields["delay"] = Delay(**fields["delay"])
        return Cluster(**fields)
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror}; is the cluster still running?") from None
    except (ValueError, TypeError, KeyError) as error:
        raise ClusterError(f"{path} is not a cluster's file: {error}") from None
