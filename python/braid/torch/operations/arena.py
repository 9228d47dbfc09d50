# SPDX-License-Identifier: Apache-2.0
"""Input buffers of a process group: arena memory by whole pages, no more than is needed."""

from __future__ import annotations

import threading

from braid import Job, Memory

_PAGE_BYTES = 4096
# Smaller buffers are kept for the next one of their size, which saves two calls of libbraid. To
# copy a larger one takes so long that these do not count, and libbraid uses its memory again.
_KEPT_BUFFER_BYTES_MAX = 1 << 16
_KEPT_BYTES_MAX = 4 << 20


class Arena:
    """Hands out buffers and takes them back. Any thread."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._lock = threading.Lock()
        self._free: dict[int, list[Memory]] = {}
        self._kept_bytes = 0

    def take(self, nbytes: int) -> Memory:
        size = -(-nbytes // _PAGE_BYTES) * _PAGE_BYTES
        if size <= _KEPT_BUFFER_BYTES_MAX:
            with self._lock:
                kept = self._free.get(size)
                if kept:
                    self._kept_bytes -= size
                    return kept.pop()
        return self._job.allocate(size)

    def give_back(self, memory: Memory) -> None:
        size = memory.nbytes
        if size <= _KEPT_BUFFER_BYTES_MAX:
            with self._lock:
                if self._kept_bytes + size <= _KEPT_BYTES_MAX:
                    self._free.setdefault(size, []).append(memory)
                    self._kept_bytes += size
                    return
        self._job.free(memory)
