# SPDX-License-Identifier: Apache-2.0
"""Input buffers of a process group: arena memory by whole pages, no more than is needed.

Buffers for CUDA tensors are registered with CUDA (see pinned.py). To register memory takes longer
than to copy it, so such buffers are kept, for all tensors of up to their size.
"""

from __future__ import annotations

import threading

import torch

from braid import BraidError, Job, Memory
from braid.torch.operations.pinned import WHOLE_PAGES_ABOVE_BYTES, PinnedMemory

_PAGE_BYTES = 4096
# Smaller buffers are kept for the next one of their size, which saves two calls of libbraid. To
# copy a larger one takes so long that these do not count, and libbraid uses its memory again.
_KEPT_BUFFER_BYTES_MAX = 1 << 16
_KEPT_BYTES_MAX = 4 << 20
# Bytes of registered buffers, whose sizes are powers of 2. A tensor without room among them goes
# through memory that is not registered.
_PINNED_BYTES_MAX = 256 << 20


class Arena:
    """Hands out buffers and takes them back. Any thread."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._lock = threading.Lock()
        self._free: dict[int, list[Memory]] = {}
        self._kept_bytes = 0
        self.pinned = PinnedMemory()
        self._pinned_free: dict[int, list[Memory]] = {}
        self._pinned_addresses: set[int] = set()
        self._pinned_bytes = 0

    def take(self, nbytes: int, device: torch.device | None = None) -> Memory:
        """A buffer; with `device` for what comes from that GPU."""
        if device is not None and nbytes > WHOLE_PAGES_ABOVE_BYTES:
            memory = self._take_pinned(1 << (nbytes - 1).bit_length(), device)
            if memory is not None:
                return memory
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
        if memory.address in self._pinned_addresses:
            with self._lock:
                self._pinned_free.setdefault(size, []).append(memory)
            return
        if size <= _KEPT_BUFFER_BYTES_MAX:
            with self._lock:
                if self._kept_bytes + size <= _KEPT_BYTES_MAX:
                    self._free.setdefault(size, []).append(memory)
                    self._kept_bytes += size
                    return
        self._job.free(memory)

    def close(self) -> None:
        """Before the job is closed: nothing is registered with CUDA any more."""
        self.pinned.close()

    def _take_pinned(self, size: int, device: torch.device) -> Memory | None:
        with self._lock:
            free = self._pinned_free.get(size)
            if free:
                return free.pop()
            if self.pinned.is_refused or self._pinned_bytes + size > _PINNED_BYTES_MAX:
                return None
            self._pinned_bytes += size
        memory = None
        try:
            memory = self._job.allocate(size)
            if self.pinned.add(memory, device):
                self._pinned_addresses.add(memory.address)
                return memory
        except BraidError:
            pass  # There may be room for what is really needed.
        if memory is not None:
            self._job.free(memory)
        with self._lock:
            self._pinned_bytes -= size
        return None
