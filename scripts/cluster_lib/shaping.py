# SPDX-License-Identifier: Apache-2.0
"""A cloud's network in small: HTB on each node's NIC, with a cap on every TCP flow.

    1:            HTB
    └ 1:1         the NIC: rate = --nic-mbit
      ├ 1:2       everything that is not TCP over IPv4: no cap but the NIC's
      └ 1:1000+k  the TCP flows whose ports hash to k: ceil = cap number (k mod caps)

A leaf's own rate is tiny, so nearly all of what it sends is borrowed from 1:1 and the NIC's rate
holds; its ceil is the cap. The hash is symmetric in the two ports, so both directions of a
connection have the same k and the same cap, at both ends.
"""

import math

from .commands import run
from .errors import ClusterError
from .state import Cluster, Node

CLASSES = 1024  # 16 flows of a node share no class in 9 of 10 cases
_CLASS_BITS = CLASSES.bit_length() - 1
_FIRST_MINOR = 0x1000
_UNSHAPED_MBIT = 100_000.0

# After a pause a class may send this much at once. It must bridge the delay of a timer on a busy
# machine, or the cap is not reached; more would let short messages pass uncapped.
_BURST_S = 0.001
_BURST_BYTES_MIN = 16 * 1024
# A leaf holds what TCP has under way in a moderate round trip: enough that a flow is not dropped
# while it finds its rate, little enough that the delay under load is bounded.
_QUEUE_S = 0.020
_QUEUE_BYTES_MIN = 256 * 1024
# One segmentation-offload packet: classes that share the NIC take turns at this size.
_QUANTUM_BYTES = 64 * 1024
_NOT_LIMITED_BYTES = 2000  # burst of the leaves' own tiny rate


def check(nic_mbit: float | None, flow_mbit: list[float]) -> None:
    values = flow_mbit + ([nic_mbit] if nic_mbit else [])
    for value in values:
        if not math.isfinite(value) or value < 0 or 0 < value < 1 or value > _UNSHAPED_MBIT:
            raise ClusterError(
                f"{value:g} Mbit/s cannot be emulated: give 0 (no limit) or 1 to {_UNSHAPED_MBIT:g}"
            )
    if len(flow_mbit) > CLASSES:
        raise ClusterError(f"at most {CLASSES} different caps, {len(flow_mbit)} were given")


def is_wanted(nic_mbit: float | None, flow_mbit: list[float]) -> bool:
    return bool(nic_mbit) or any(flow_mbit)


def apply(cluster: Cluster, nic_mbit: float | None, flow_mbit: list[float]) -> None:
    """Sets, changes or removes the shaping of all nodes; open connections go on."""
    was, wanted = is_wanted(cluster.nic_mbit, cluster.flow_mbit), is_wanted(nic_mbit, flow_mbit)
    for node in cluster.nodes:
        if wanted:
            _tc(node, _script(node.interface, nic_mbit, flow_mbit, fresh=not was))
        elif was:
            _tc(node, [f"qdisc del dev {node.interface} root"])
    cluster.nic_mbit, cluster.flow_mbit = nic_mbit, flow_mbit


def _tc(node: Node, lines: list[str]) -> None:
    run(["tc", "-n", node.namespace, "-batch", "-"], script="\n".join(lines) + "\n")


def _script(
    interface: str, nic_mbit: float | None, flow_mbit: list[float], *, fresh: bool
) -> list[str]:
    nic = nic_mbit or _UNSHAPED_MBIT
    caps = [min(cap or nic, nic) for cap in flow_mbit] or [nic]
    own_bit = max(8, int(nic * 1e6 / 2 / CLASSES))
    lines = [f"qdisc add dev {interface} root handle 1: htb default 2"] if fresh else []
    lines.append(
        f"class replace dev {interface} parent 1: classid 1:1 htb rate {_bits(nic)} "
        f"burst {_burst(nic)} cburst {_burst(nic)} quantum {_QUANTUM_BYTES}"
    )
    leaves = [(2, nic)] + [(_FIRST_MINOR + k, caps[k % len(caps)]) for k in range(CLASSES)]
    for minor, cap in leaves:
        lines.append(
            f"class replace dev {interface} parent 1:1 classid 1:{minor:x} htb rate {own_bit}bit "
            f"ceil {_bits(cap)} burst {_NOT_LIMITED_BYTES} cburst {_burst(cap)} "
            f"quantum {_QUANTUM_BYTES}"
        )
        queue = max(_QUEUE_BYTES_MIN, int(cap * 1e6 / 8 * _QUEUE_S))
        lines.append(f"qdisc replace dev {interface} parent 1:{minor:x} bfifo limit {queue}")
    if fresh:
        lines.append(
            f"filter add dev {interface} parent 1: protocol all prio 1 bpf "
            f'bytecode "{_classifier()}" flowid 1:2'
        )
    return lines


def _bits(mbit: float) -> str:
    return f"{int(mbit * 1e6)}bit"


def _burst(mbit: float) -> int:
    return max(_BURST_BYTES_MIN, int(mbit * 1e6 / 8 * _BURST_S))


def _classifier() -> str:
    """Classic BPF that returns the class of a packet; 0 leaves it to HTB's default class.

    k is the top bits of (source port + destination port) times 2^32 divided by the golden ratio:
    the ports of flows that are opened one after the other land far apart, and no bit of the ports
    is wasted (connect() gives all of its ports the same lowest bit, so low bits alone would fill
    only half of the classes).
    """
    ethernet, no_class = 14, 16
    program = [
        (0x28, 0, 0, 12),  # ldh [12]: ethertype
        (0x15, 0, no_class - 2, 0x0800),  # not IPv4: no class
        (0x30, 0, 0, ethernet + 9),  # ldb: protocol
        (0x15, 0, no_class - 4, 6),  # not TCP: no class
        (0x28, 0, 0, ethernet + 6),  # ldh: fragment offset
        (0x45, no_class - 6, 0, 0x1FFF),  # a later fragment has no ports: no class
        (0xB1, 0, 0, ethernet),  # ldxb 4*([14]&0xf): length of the IP header
        (0x48, 0, 0, ethernet),  # ldh [x+14]: source port
        (0x02, 0, 0, 0),  # st M[0]
        (0x48, 0, 0, ethernet + 2),  # ldh [x+16]: destination port
        (0x61, 0, 0, 0),  # ldx M[0]
        (0x0C, 0, 0, 0),  # add x
        (0x24, 0, 0, 0x9E3779B1),  # mul
        (0x74, 0, 0, 32 - _CLASS_BITS),  # rsh: k
        (0x04, 0, 0, 0x10000 + _FIRST_MINOR),  # add: 1:1000 + k
        (0x16, 0, 0, 0),  # ret a
        (0x06, 0, 0, 0),  # ret 0
    ]
    return f"{len(program)}," + ",".join(" ".join(map(str, step)) for step in program)
