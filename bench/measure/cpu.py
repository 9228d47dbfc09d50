# SPDX-License-Identifier: Apache-2.0
"""Processor time: of other processes, to the nanosecond, and of the whole machine."""

import os
import time

# Set in the environment of everything a system starts; what it starts in turn inherits it, also
# what leaves its process group (Open MPI's daemons do).
MARKER = "BRAID_MEASURE_SYSTEM"
_CPUCLOCK_SCHED = 2  # of the kernel's clock ids: user and system time, ended threads included


# Reading idle time to 10 ms at both ends then adds no more than a few per cent.
_TELLING_SECONDS = 0.5


class Machine:
    """What all processors together do from now on, for whichever process.

    What the kernel does in interrupts is charged to the process that they meet. Where they meet an idle processor, as
    they mostly do when a system leaves the network idle too, it is charged to nobody, and only seen here.
    """

    def __init__(self) -> None:
        self._begin, self._unused = time.monotonic(), _unused_seconds()

    def busy_seconds(self) -> float | None:
        """None: too little time has passed to tell."""
        elapsed = time.monotonic() - self._begin
        if elapsed < _TELLING_SECONDS:
            return None
        return max(0.0, (os.cpu_count() or 1) * elapsed - (_unused_seconds() - self._unused))


def _unused_seconds() -> float:
    with open("/proc/stat") as file:
        fields = file.readline().split()
    idle, iowait, steal = (int(fields[i]) for i in (4, 5, 8))
    return (idle + iowait + steal) / os.sysconf("SC_CLK_TCK")


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
