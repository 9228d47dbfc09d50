# SPDX-License-Identifier: Apache-2.0
"""Collectives on CUDA tensors: CUDA streams wait for them, threads do not.

libbraid queues the copies from and to the GPU when an operation is submitted, and returns. Who wants
the result lets a stream wait for it. These operations are steps of a dynamic tensor of their
own, so that collectives of CPU tensors do not come between; all ranks submit them in one order.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
from torch.distributed import DistBackendError

from braid import BraidError, Job, TensorSpec
from braid._devices import DeviceMemory
from braid.torch.operations import devices
from braid.torch.operations.callbacks import current_origin
from braid.torch.operations.device_blocks import Block
from braid.torch.operations.devices import WAITS, SideStreams
from braid.torch.operations.failures import as_distributed, refuse_handlers
from braid.torch.operations.flight_record import Entry

_log = logging.getLogger("braid")
# A script that never waits is slowed down from here on.
_IN_FLIGHT_MAX = 1024

# Levels, and what a job's log says of them.
HOST_MEMORY, ONE_LEVEL, TWO_LEVELS = 0, 1, 2
_WAYS = {
    HOST_MEMORY: (
        logging.WARNING,
        "are copied through the CPU's memory, and the thread that calls waits for that",
    ),
    ONE_LEVEL: (logging.INFO, "go over braid alone"),
    TWO_LEVELS: (logging.INFO, "go in two levels, NCCL within each node and braid between nodes"),
}


class Collective(NamedTuple):
    """What an operation is, as braid_operation has it."""

    kind: int
    dtype: int
    count: int
    reduction: int = 0
    root: int = 0
    timeout_ms: int = 0
    input_splits: Any = None
    output_splits: Any = None


class DeviceOperation:
    """One operation on its way. Any thread may call.

    It holds its tensors until all copies are over, or until the stream that was current at the
    submission waits for them: memory is then used again behind that wait.
    """

    def __init__(
        self, job: Job, ticket: int, device: torch.device, stream: int, held: Any,
        entry: Entry | None, attended: AbstractContextManager[None],
    ) -> None:  # fmt: skip
        """`stream` was current at the submission. `attended` keeps the job open."""
        self._job = job
        self._ticket = ticket
        self._device = device
        self._held = held
        self._entry = entry
        self._attended = attended
        self._stream = stream
        # Behind what takes the results to where they belong, if that is not where they come.
        self._mark: Any = None
        # Re-entrant: a signal's handler may look at what its thread was looking at.
        self._lock = threading.RLock()
        self._users = 0
        self._has_ended = False
        self._waiting_stream: int | None = None
        self.error: Exception | None = None

    def unpack(self, streams: SideStreams, block: Block) -> None:
        """Once, by the thread that has submitted it: takes results out of a block's room."""
        with streams.on(self._device):
            stream = devices.cuda.current_stream(self._device)
            devices.cuda.let_wait(self._job, self._ticket, stream)
            block.unpack()
            self._mark = devices.cuda.mark(self._device)

    def let_current_stream_wait(self) -> None:
        """Raises the operation's error only if that is known already."""
        stream = devices.cuda.current_stream(self._device)
        if stream != self._waiting_stream and self._begin_use():
            try:
                with self._attended:
                    if self._mark is None:
                        devices.cuda.let_wait(self._job, self._ticket, stream)
                    else:
                        devices.cuda.wait_for_mark(self._device, self._mark)
            except BraidError as cause:
                raise as_distributed(cause) from cause
            finally:
                self._end_use()
        if self.error is not None:
            raise self.error.with_traceback(None)
        self._waiting_stream = stream
        if stream == self._stream:
            self._held = None

    @property
    def is_awaited(self) -> bool:
        """Whether a stream waits for it."""
        return self._waiting_stream is not None

    def hold(self, seconds: float | None = None) -> None:
        """Holds the thread until the operation has ended, at most so long, and raises its error."""
        if self._begin_use():
            try:
                with self._attended:
                    self._job.wait(self._ticket, seconds)
                if self._mark is not None:
                    self._mark.synchronize()
            except BraidError as cause:
                raise as_distributed(cause) from cause
            finally:
                self._end_use()

    def look(self) -> bool:
        """Whether it has ended and all copies are over. Never blocks."""
        with self._lock:
            if not self._has_ended and not self._users:
                error = self._test()
                if error == [] and self._waiting_stream is None and self._mark is None:
                    error = self._queue_copies()
                if error is None or (self._mark is not None and not self._mark.query()):
                    return False
                self._has_ended, self._held = True, None
                if error:
                    self.error = as_distributed(error[0])
                try:
                    self._job.device_release(self._ticket)
                except BraidError:
                    pass  # The job is closed, and with it all its tickets have gone.
            else:
                return self._has_ended
        if self._entry is not None:
            self._entry.end(self.error)
        return True

    def _test(self) -> list[BraidError] | None:
        """Its error or none, in a list, where it has ended; else None."""
        try:
            return [] if self._job.test(self._ticket) else None
        except BraidError as cause:
            return [cause]

    def _queue_copies(self) -> list[BraidError] | None:
        """As _test(). Where streams cannot wait, it may have ended in the CPU's memory: its results
        come to the GPU when somebody waits for them."""
        try:
            stream = devices.cuda.current_stream(self._device)
            devices.cuda.let_wait(self._job, self._ticket, stream)
        except BraidError as cause:
            return [cause]
        return self._test()

    def _begin_use(self) -> bool:
        """The ticket stays until _end_use(). False: the results are there, whichever stream looks."""
        with self._lock:
            if not self._has_ended:
                self._users += 1
                return True
        if self.error is not None:
            raise self.error.with_traceback(None)
        return False

    def _end_use(self) -> None:
        with self._lock:
            self._users -= 1


class DeviceOperations:
    """The operations of one job on CUDA tensors. Any thread may call."""

    def __init__(self, job: Job, attended: AbstractContextManager[None]) -> None:
        """`attended` keeps the job open, or raises where it is being closed."""
        self._job = job
        self._attended = attended
        # Re-entrant, so that start() can tell that its own thread is in it already.
        self._lock = threading.RLock()
        self._tensor: int | None = None
        # libbraid takes a job's tensors from one GPU.
        self._device: torch.device | None = None
        # As Job.open_levels() has it; None: no tensor of a GPU has come yet.
        self._levels: int | None = None
        self._in_flight: deque[DeviceOperation] = deque()
        self._streams = SideStreams(WAITS)

    def take(self, tensors: Sequence[torch.Tensor], on: Sequence[torch.device]) -> bool:
        """Whether an operation on these, which are `on` those GPUs, goes this way: all are on one GPU,
        and no callback starts it. Callbacks that run on threads of their own come in another order on
        other ranks."""
        return (
            len(on) == 1
            and current_origin() is None
            and all(map(devices.cuda.holds, tensors))
            and self.serves(on[0])
        )

    def serves(self, device: torch.device) -> bool:
        """Whether libbraid takes tensors from this GPU: the first one that is asked for, if any. All
        ranks ask first at the same point, and wait for each other there."""
        if self._levels is None:
            self._open(device)
        return device == self._device and self._levels != HOST_MEMORY

    def goes_in_two_levels(self, device: torch.device) -> bool:
        """Whether collectives of this GPU go over NCCL within each node, and braid between nodes."""
        return self.serves(device) and self._levels == TWO_LEVELS

    def start(
        self, collective: Collective, given: Block, taken: Block | None,
        places: Sequence[int], device: torch.device, entry: Entry | None,
    ) -> DeviceOperation:  # fmt: skip
        """Starts one. Results come to `taken`, or for an all-gather to a place for each rank."""
        refuse_handlers(self._lock, self._job.name)
        self.look()
        stream = devices.cuda.current_stream(device)
        memory = DeviceMemory(
            given.address, 0 if taken is None else taken.address, stream, places, streams_wait=True
        )
        try:
            with self._attended, self._lock:
                ticket = self._submit(collective, memory)
                operation = DeviceOperation(
                    self._job, ticket, device, stream, (given, taken), entry, self._attended
                )
                self._in_flight.append(operation)
            if taken is not None and taken.room is not None:
                operation.unpack(self._streams, taken)
        except BraidError as error:
            raise as_distributed(error) from error
        return operation

    def look(self) -> None:
        """Lets go of what has ended. Never blocks, but where far too many are under way."""
        if not self._in_flight or not self._lock.acquire(blocking=False):
            return
        try:
            while self._in_flight and self._in_flight[0].look():
                self._in_flight.popleft()
            oldest = self._in_flight[0] if len(self._in_flight) > _IN_FLIGHT_MAX else None
        finally:
            self._lock.release()
        if oldest is not None:
            oldest.hold()

    def finish(self, seconds: float | None = None) -> None:
        """Before the job is closed, which ends what is under way: holds the thread until operations
        have ended that streams wait for. The script counts on their results."""
        end = None if seconds is None else time.monotonic() + seconds
        for operation in [each for each in self._in_flight if each.is_awaited]:
            with contextlib.suppress(DistBackendError):  # The script has been told, or has gone.
                operation.hold(None if end is None else max(0.001, end - time.monotonic()))
        self.look()

    def let_go(self) -> None:
        """Forgets all of them: the job is closed, or closes now."""
        self._in_flight.clear()

    def _open(self, device: torch.device) -> None:
        """Agrees with all ranks on the way of the job's tensors."""
        refuse_handlers(self._lock, self._job.name)
        # On a stream of its own: libbraid learns the GPU from it, and the default stream's number is 0.
        with self._attended, self._lock, self._streams.on(device):
            if self._levels is not None:
                return
            self._device = device
            try:
                levels, reason = self._job.open_levels(devices.cuda.current_stream(device))
            except BraidError as error:
                raise as_distributed(error) from error
            self._levels = levels
        if self._job.rank == 0:
            level, text = _WAYS[levels]
            because = f": {reason}" if reason else ""
            _log.log(level, "CUDA tensors of job %s %s%s", self._job.name, text, because)

    def _submit(self, collective: Collective, memory: DeviceMemory) -> int:
        if self._tensor is None:
            self._tensor = self._job.register([TensorSpec("collectives of GPUs", dynamic=True)])[0]
        kind, dtype, count, reduction, root, timeout_ms, to, from_ = collective
        return self._job.submit_device(
            kind, self._tensor, 0, reduction, root, dtype, timeout_ms, count, memory, to, from_
        )
