# SPDX-License-Identifier: Apache-2.0
"""Did a system use the network? The nodes are one machine, so a library may find shorter ways between them."""

import subprocess

from cluster_lib import state

from ..errors import SystemFailed
from .cases import Case

# Counters are read a little before and after the operations.
_TOLERANCE = 0.95


def bytes_sent(nodes: list[state.Node]) -> int:
    """By all nodes' interfaces since they were made, headers included."""
    return sum(_sent_by(node) for node in nodes)


def _sent_by(node: state.Node) -> int:
    path = f"/sys/class/net/{node.interface}/statistics/tx_bytes"
    done = subprocess.run(node.enter(["cat", path]), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemFailed(f"{node.name}: cannot read {path}: {done.stderr.strip()}")
    return int(done.stdout)


def expect_used(
    nodes: list[state.Node], ranks_per_node: int, case: Case, iterations: int, sent: int
) -> None:
    least = round(case.least_bytes_sent(len(nodes), ranks_per_node) * iterations)
    if sent < _TOLERANCE * least:
        raise SystemFailed(
            f"the nodes sent {sent} bytes in {iterations} times {case.collective} of {case.bytes} bytes, which need "
            f"{least}: it does not use the network"
        )
