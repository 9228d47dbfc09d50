# SPDX-License-Identifier: Apache-2.0
"""Process groups whose ranks are threads of one process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from thread_job import DEADLINE_S, ThreadJob, World

_LOOK_S = 0.3  # Nobody comes within this time who is not to come.


class Blocked:
    """A training whose last round does not end, and whose next step has begun on a thread; on all ranks."""

    def __init__(self, group: Any, training: Any, world: World, number: int) -> None:
        """`training.step(number)` does not wait for its own round, and the next one waits for that."""
        self._group, self._world, self._tensors = group, world, len(training.parameters)
        group.barrier().wait()
        world.hold(True)
        training.step(number)
        self._thread = threading.Thread(target=training.step, args=(number + 1,), daemon=True)
        self._thread.start()
        self._thread.join(_LOOK_S)
        assert self._thread.is_alive()
        group.barrier().wait()

    def rounds(self) -> int:
        """That are on their way: all ranks have submitted them."""
        with self._world.changed:
            operations = self._world.operations.values()
            on_their_way = [o for o in operations if o.updates and o.results is None]
            return sum(len(o.inputs) == self._world.size for o in on_their_way) // self._tensors

    def wait_for_rounds(self, count: int) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while self.rounds() < count and time.monotonic() < deadline:
            time.sleep(0.01)
        assert self.rounds() == count

    def end(self) -> None:
        self._group.barrier().wait()
        self._world.hold(False)
        self._thread.join()


def run_ranks(size: int, work: Callable[[Any, World], Any]) -> list[Any]:
    """`work(group, world)` on so many ranks at once; what each returned. Raises the first error."""
    from braid.torch.group.process_group import BraidProcessGroup

    world, store = World(size), dist.HashStore()
    results: list[Any] = [None] * size
    errors: list[BaseException | None] = [None] * size

    def run(rank: int) -> None:
        job = ThreadJob(world, rank, "threads")
        group = BraidProcessGroup(store, rank, size, timedelta(seconds=DEADLINE_S), job)
        try:
            results[rank] = work(group, world)
        except BaseException as error:
            errors[rank] = error
            world.fail(f"rank {rank} has failed: {error}")
        finally:
            group.shutdown()

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive(), "a rank hangs"
    # What follows from another rank's failure tells less.
    for error in sorted(filter(None, errors), key=lambda error: "has failed" in str(error)):
        raise error
    return results
