# SPDX-License-Identifier: Apache-2.0
"""The names of a group's operations: (tensor, step), on which all ranks agree.

Those that the script starts itself are steps of one dynamic tensor, because ranks start them in one
order. Those that callbacks start have tensors of their own: one for the callbacks of each operation
modulo SLOTS, and one for each operation that such callbacks start, if that has callbacks which
start some in turn. The steps of a tensor grow because its callbacks run one at a time, earlier
operations first.
"""

from __future__ import annotations

from torch.distributed import DistBackendError

from braid import Job, TensorSpec
from braid.torch.operations.callbacks import LEVELS_MAX, SLOTS, Origin

# Bits of a number for the operations that one operation's callbacks start.
_CHILD_BITS = 24
_STREAMS_MAX = 4096


class Streams:
    """The dynamic tensors of one job. One thread at a time uses them."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.main = job.register([TensorSpec("collectives", dynamic=True)])[0]
        self._of_callbacks: dict[tuple[str, int, tuple[int, ...]], int] = {}

    def place_of(self, child: Origin) -> tuple[int, int]:
        """Tensor and step of an operation that a callback starts."""
        index = child.path[-1]
        if len(child.path) >= LEVELS_MAX or index >= 1 << _CHILD_BITS:
            raise DistBackendError(
                f"job {self._job.name}: callbacks may start collectives {LEVELS_MAX - 1} levels "
                f"deep and {1 << _CHILD_BITS} for one operation, not {child.path}"
            )
        key = child.group, child.number % SLOTS, child.path[:-1]
        handle = self._of_callbacks.get(key)
        if handle is None:
            handle = self._register(key)
        return handle, (child.number // SLOTS) << _CHILD_BITS | index

    def _register(self, key: tuple[str, int, tuple[int, ...]]) -> int:
        group, slot, path = key
        # Level 0 all at once: they are going to be used one after the other.
        slots = range(SLOTS) if not path else [slot]
        if len(self._of_callbacks) + len(slots) > _STREAMS_MAX:
            raise DistBackendError(
                f"job {self._job.name}: callbacks of callbacks start collectives from more than "
                f"{_STREAMS_MAX} places"
            )
        keys = [(group, each, path) for each in slots]
        specs = [TensorSpec(self._name(*each), dynamic=True) for each in keys]
        self._of_callbacks.update(zip(keys, self._job.register(specs)))
        return self._of_callbacks[key]

    def _name(self, group: str, slot: int, path: tuple[int, ...]) -> str:
        # Callbacks of another group's operations may start some of this one.
        whose = "" if group == self._job.name else f" of {group}"
        return "/".join([f"callbacks{whose}", str(slot), *map(str, path)])
