# SPDX-License-Identifier: Apache-2.0
"""Packets that get lost without a word, in the namespace of one node."""

import contextlib
from collections.abc import Iterator

import pytest
from braid_build import PATIENCE_S, ran
from real_cluster import Node

CONTROL_PORT = 7410


def change(node: Node, action: str, rules: list[str]) -> None:
    """action: -A adds, -D deletes."""
    for rule in rules:
        done = ran(node.enter(["iptables", "-w", action, *rule.split()]))
        assert done.returncode == 0, f"{rule}: {done.stderr}"


def skip_without_packet_filter(node: Node) -> None:
    try:
        done = ran(node.enter(["iptables", "-w", "-S"]))
    except FileNotFoundError:
        pytest.skip("iptables is not installed")
    if done.returncode != 0:
        pytest.skip(f"this kernel drops no packets: {done.stderr.strip()}")


@contextlib.contextmanager
def dropped(node: Node, *rules: str) -> Iterator[None]:
    """What the rules (as for iptables -A) match is dropped meanwhile."""
    whole = [f"{rule} -j DROP" for rule in rules]
    change(node, "-A", whole)
    try:
        yield
    finally:
        change(node, "-D", whole)


def connection_rules(ports: tuple[str, str], directions: str) -> list[str]:
    """For the node's connection with these (local, remote) ports; directions: in, out, both."""
    local, remote = ports
    rules = {
        "in": f"INPUT -p tcp --sport {remote} --dport {local}",
        "out": f"OUTPUT -p tcp --sport {local} --dport {remote}",
    }
    return list(rules.values()) if directions == "both" else [rules[directions]]


def all_flows_rules() -> list[str]:
    """Everything but the control connections."""
    low, high = f"1:{CONTROL_PORT - 1}", f"{CONTROL_PORT + 1}:65535"
    return [
        f"{chain} -p tcp -m multiport --sports {low},{high} -m multiport --dports {low},{high}"
        for chain in ("INPUT", "OUTPUT")
    ]
