# SPDX-License-Identifier: Apache-2.0
"""Processor time of other processes, to the nanosecond."""

import os
import time

# Set in the environment of everything a system starts; what it starts in turn inherits it, also
# what leaves its process group (Open MPI's daemons do).
MARKER = "BRAID_COMPARE_SYSTEM"
_CPUCLOCK_SCHED = 2  # of the kernel's clock ids: user and system time, ended threads included


def seconds_of(pids: list[int]) -> float:
    """What these processes have used so far. One that has ended counts nothing."""
    return sum(_seconds(pid) for pid in pids)


def _seconds(pid: int) -> float:
    clock = (~pid << 3) | _CPUCLOCK_SCHED  # as clock_getcpuclockid(3) makes it
    try:
        return time.clock_gettime(clock)
    except OSError:
        return 0.0


def processes_of(system: str, cluster_variable: str) -> list[int]:
    """The pids whose environment has this system's mark, and `cluster_variable` ("NAME=value")."""
    wanted = {f"{MARKER}={system}".encode(), cluster_variable.encode()}
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if wanted <= set(file.read().split(b"\0")):
                        found.append(int(name))
            except OSError:
                continue  # it has just ended
    return found
