# SPDX-License-Identifier: Apache-2.0
"""Where the input of a round of weights lies: in an arena of the job, so that nobody copies it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import torch

from braid import Job, Memory


class InputPlace(NamedTuple):
    """One tensor's input: a vector for its values, and the same memory for the daemon."""

    view: torch.Tensor
    memory: Memory


class RoundInputs:
    """Memory for the inputs of one round, one after the other, so that the daemon merges them
    without a copy."""

    def __init__(self, job: Job, numels: Sequence[int], dtype: torch.dtype) -> None:
        """Raises BraidError where the arenas may not grow by so much."""
        self._job = job
        self._block = job.allocate(max(1, sum(numels) * dtype.itemsize))
        raw = (ctypes.c_ubyte * self._block.nbytes).from_address(self._block.address)
        bytes_of = torch.frombuffer(raw, dtype=torch.uint8)
        self.places: list[InputPlace] = []
        offset = 0
        for numel in numels:
            end = offset + numel * dtype.itemsize
            memory = Memory(self._block.address + offset, end - offset)
            self.places.append(InputPlace(bytes_of[offset:end].view(dtype), memory))
            offset = end

    def free(self) -> None:
        """When no round reads it any more. Nobody may use its places afterwards."""
        self.places.clear()
        self._job.free(self._block)
