# SPDX-License-Identifier: Apache-2.0
"""Arena memory that is registered with CUDA: GPUs copy to it by themselves, several times as fast.

A GPU keeps the pages that were there when memory was registered, whatever becomes of the mapping. So
only memory is registered that stays in use until remove() or the job's end: libbraid gives back to
the kernel, and unmaps, nothing of that. Results are not registered: the daemon gives back pages of its
result memory that no operation uses, trainers do not learn of it, and a GPU would read the old ones.
"""

from __future__ import annotations

import logging
import threading

import torch

from braid import Memory

_log = logging.getLogger("braid")
# cudaHostRegisterPortable: for all CUDA contexts of this process.
_PORTABLE = 1
# libbraid gives whole pages to buffers of more bytes than that: they share none with others, which
# may come and go.
WHOLE_PAGES_ABOVE_BYTES = 1 << 16


class PinnedMemory:
    """What is registered of one job's arenas. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._addresses: list[int] = []
        # By CUDA, and so not tried again; or this is closed.
        self.is_refused = False

    def add(self, memory: Memory, device: torch.device) -> bool:
        """Registers memory that is not freed before remove() or close(). False: it is as it was."""
        if memory.nbytes <= WHOLE_PAGES_ABOVE_BYTES:
            return False
        with self._lock:
            if self.is_refused:
                return False
            with torch.cuda.device(device):
                code = int(
                    torch.cuda.cudart().cudaHostRegister(memory.address, memory.nbytes, _PORTABLE)
                )
                if code == 0:
                    self._addresses.append(memory.address)
                    return True
                self.is_refused = True
                _take_error(device)
        _log.info("CUDA does not register %d bytes: error %d", memory.nbytes, code)
        return False

    def remove(self, memory: Memory) -> None:
        """After the last copy, and before the memory is freed."""
        with self._lock:
            if memory.address not in self._addresses:
                return
            self._addresses.remove(memory.address)
        torch.cuda.cudart().cudaHostUnregister(memory.address)

    def close(self) -> None:
        """Before the arenas are unmapped, and after the last copy has ended."""
        with self._lock:
            addresses, self._addresses = self._addresses, []
            self.is_refused = True
        for address in addresses:
            torch.cuda.cudart().cudaHostUnregister(address)


def _take_error(device: torch.device) -> None:
    """CUDA keeps the error for the next launch of a kernel: so this launches one."""
    try:
        torch.zeros(1, device=device).add_(1)
    except RuntimeError:
        pass
