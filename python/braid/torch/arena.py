# SPDX-License-Identifier: Apache-2.0
"""Input buffers of a process group: arena memory, kept for the next operation of its size."""

from __future__ import annotations

import threading

from braid import Job, Memory

_SMALLEST_BYTES = 4096
# Beyond this, memory that comes back is freed instead of kept.
_KEPT_BYTES_MAX = 1 << 30


class Arena:
    """Memory by size class (powers of two: pages that are never touched cost nothing)."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._lock = threading.Lock()
        self._free: dict[int, list[Memory]] = {}
        self._kept_bytes = 0

    def take(self, nbytes: int) -> Memory:
        size = max(_SMALLEST_BYTES, 1 << (nbytes - 1).bit_length())
        with self._lock:
            kept = self._free.get(size)
            if kept:
                self._kept_bytes -= size
                return kept.pop()
        return self._job.allocate(size)

    def give_back(self, memory: Memory) -> None:
        size = memory.nbytes
        with self._lock:
            if self._kept_bytes + size <= _KEPT_BYTES_MAX:
                self._free.setdefault(size, []).append(memory)
                self._kept_bytes += size
                return
        self._job.free(memory)
