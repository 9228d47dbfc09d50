# SPDX-License-Identifier: Apache-2.0
"""What the daemon of this node counts, and costs. scripts/cluster has /metrics at the node's address."""

import os
import re
import urllib.request

_PORT = 9431
_TIMEOUT_S = 30


def wire_bytes_sent(address: str) -> int:
    """Payload of chunks on all flows since the daemon began."""
    url = f"http://{address}:{_PORT}/metrics"
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response:
        text = response.read().decode()
    found = re.search(r'^braid_wire_bytes_total\{direction="sent"\} (\S+)$', text, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{url} has no braid_wire_bytes_total")
    return int(float(found.group(1)))


def cpu_seconds_of(pid: int) -> float:
    """Processor time of all threads of a process, those included that have ended."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    user, system = int(fields[11]), int(fields[12])
    return (user + system) / os.sysconf("SC_CLK_TCK")


def machine_cpu_seconds() -> float:
    """Of all processors, for whatever, interrupts included: what they have not idled."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _idle, _iowait, *interrupts = map(int, file.readline().split()[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
