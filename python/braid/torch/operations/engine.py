# SPDX-License-Identifier: Apache-2.0
"""The operations of one process group: in through the arena, out by completion threads.

The group is one braid job. Collectives that the script starts are steps of one dynamic tensor: ranks
call them in the same order, so the sequence number is the name that they agree on. Those that
callbacks of futures start have tensors of their own (see callbacks.py), and so have the gradients
of DDP's hook (see gradients.py).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakMethod

import torch
from torch.distributed import DistBackendError

from braid import BraidError, Collective, Job, Memory
from braid._inputs import splits_of
from braid.torch.operations.arena import Arena
from braid.torch.operations.callbacks import CallbackThreads, Origin, current_origin
from braid.torch.operations.completion import AnyOrderThread, CompletionThread
from braid.torch.operations.device_operations import DeviceOperations
from braid.torch.operations.failures import as_distributed, refuse_handlers
from braid.torch.operations.flight_record import GroupRecord
from braid.torch.operations.in_pieces import CutOperation, InPieces, Way
from braid.torch.operations.lent_memory import LentMemory
from braid.torch.operations.messages import Messages
from braid.torch.operations.packing import Outputs, Unpack, pack
from braid.torch.operations.pieces import PIECES_MAX, Cuts, Piece
from braid.torch.operations.streams import Streams
from braid.torch.operations.tickets import Tickets
from braid.torch.operations.work import BraidWork

# How long the completion thread may take to notice that the group is being closed.
_PIECE_MS = 100
_JOIN_SECONDS = 10.0
# Far below what libbraid takes, so that a script which never waits is slowed down, not refused.
_IN_FLIGHT_MAX = 1024

# Plain integers: enum members cost a conversion on every call.
BARRIER = int(Collective.BARRIER)
ALL_REDUCE = int(Collective.ALL_REDUCE)
BROADCAST = int(Collective.BROADCAST)
ALL_GATHER = int(Collective.ALL_GATHER)
REDUCE_SCATTER = int(Collective.REDUCE_SCATTER)
GATHER = int(Collective.GATHER)
SCATTER = int(Collective.SCATTER)
ALL_TO_ALL = int(Collective.ALL_TO_ALL)


class Pending(NamedTuple):
    """A submitted operation and what to do when it is done."""

    ticket: int
    memory: Memory | None
    unpack: Unpack | None
    work: BraidWork
    meanwhile: Once | None


class Once:
    """Does something when it is called first; other threads that call it meanwhile wait."""

    def __init__(self, do: Callable[[], None]) -> None:
        self._do: Callable[[], None] | None = do
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            do, self._do = self._do, None
            if do is not None:
                do()


class Attended:
    """`with` it a caller waits and looks at results itself, and close() does not close the job before
    the end. Any thread, and within itself."""

    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> None:
        self._engine.enter()

    def __exit__(self, *_: object) -> None:
        self._engine.leave()


class Engine:
    """Submits and completes operations. Any thread may call; close() ends it and its job."""

    def __init__(self, job: Job, timeout_seconds: float, record: GroupRecord) -> None:
        self.job = job
        self.record = record
        self._timeout_seconds = timeout_seconds
        self.arena = Arena(job)
        self.cuts = Cuts(job.world_size, job.nodes)
        self._way = Way(job, self.arena, self.wait)
        self.tickets = Tickets()
        self.sequence = 0  # How many operations the script has started.
        self._step = 0
        self._streams = Streams(job)
        # Re-entrant, so that run() can tell that its own thread is in it already.
        self._lock = threading.RLock()
        # Operations of the completion threads and of callers that wait themselves; each piece counts.
        self._in_flight = 0
        # Another lock: while one thread copies pieces in, others see operations to their end.
        self._one_ended = threading.Condition()
        self._completion = CompletionThread("braid-completion", self._complete)
        # What callbacks start is in another order on other ranks, and must not queue behind each
        # other: one rank's first may be what another rank can only start after its own first.
        self._nested = AnyOrderThread("braid-nested", self._complete, self._has_ended)
        self.callbacks = CallbackThreads("braid-callbacks")
        # A thread of their own: gradients that are planned together end together, and a collective
        # in between (of a SyncBatchNorm, say) must not queue behind the first of them.
        self.gradients = CompletionThread("braid-gradients", _complete_itself)
        self.lent = LentMemory(job, self.gradients.put)
        self.messages = Messages(self)
        self.attended = Attended(self)
        self.on_devices = DeviceOperations(job, self.attended)
        record.look = WeakMethod(self.on_devices.look)
        self.closing = False
        self._pid = os.getpid()

    def run(
        self,
        collective: int,
        dtype: int,
        count: int,
        inputs: Sequence[torch.Tensor],
        unpack: Unpack | None,
        work: BraidWork,
        *,
        reduction: int = 0,
        root: int = 0,
        timeout_ms: int = 0,
        splits: tuple[Sequence[int], Sequence[int]] | None = None,
        meanwhile: Once | None = None,
        wait: bool = False,
    ) -> None:
        """Starts one operation whose end finishes `work`.

        `inputs` are contiguous tensors that lie one after the other in the operation's input. Where
        tensors are on a GPU the caller has to wait: its current stream gets the result.
        `splits` are an all-to-all's: elements to, and from, each rank. `meanwhile` is done while
        the daemon is at work, and before `work` is finished.
        With `wait` the caller's thread sees it through, which saves a change of threads.
        """
        refuse_handlers(self._lock, self.job.name)
        memory = None
        try:
            memory = pack(self.arena, inputs) if inputs else None
            address = memory.address if memory else None
            to, from_ = self.splits_of(splits)
            self._make_room(1)
            try:
                with self._lock:
                    parent = current_origin()
                    origin, stream, step = self._place_of(parent)
                    ticket = self.job.submit_raw(
                        collective, stream, step, reduction, root, dtype, timeout_ms, count,
                        address, to, from_,
                    )  # fmt: skip
                    if parent is None:
                        self.sequence += 1
                        self._step = step + 1
                    work.comes_from(origin, self.callbacks)
                    pending = Pending(ticket, memory, unpack, work, meanwhile)
                    if not wait:
                        self._put(pending, parent)
            except BaseException:
                self.leave()
                raise
        except BraidError as error:
            if memory is not None:
                self.arena.give_back(memory)  # The daemon has not seen it.
            raise as_distributed(error) from error
        if meanwhile is not None:
            meanwhile()
        if wait:
            self._complete(pending)

    def run_in_pieces(
        self,
        pieces: Sequence[Piece],
        collective: int,
        dtype: int,
        inputs: Sequence[torch.Tensor],
        outputs: Outputs,
        work: BraidWork,
        *,
        reduction: int = 0,
        root: int = 0,
        timeout_ms: int = 0,
        wait: bool = False,
    ) -> None:
        """The same for an operation that is cut. `inputs` are in the CPU's memory, `outputs` lie one after
        the other in its result. Not for callbacks: their operations go as they are."""
        refuse_handlers(self._lock, self.job.name)
        operation = CutOperation(collective, dtype, reduction, root, timeout_ms)
        pending = InPieces(self._way, operation, pieces, inputs, outputs, work)
        self._make_room(pending.count)
        try:
            with self._lock:
                work.comes_from(Origin(self.job.name, self.sequence), self.callbacks)
                try:
                    pending.submit(self._streams.main, self._step)
                finally:
                    if pending.has_begun:
                        self.sequence += 1
                        self._step += pending.count
                if not wait:
                    self._put(pending, None)
        except BaseException:
            self._abandon(pending)
            raise
        if wait:
            self._complete(pending)

    def splits_of(self, splits: tuple[Sequence[int], Sequence[int]] | None) -> tuple[Any, Any]:
        """An all-to-all's, as the job takes them."""
        if splits is None:
            return None, None
        to, from_ = (splits_of(each, self.job.world_size) for each in splits)
        return to, from_

    def set_timeout(self, seconds: float) -> None:
        """The timeout of operations from here on."""
        self.job.set_timeout(seconds)
        self._timeout_seconds = seconds

    def close(self) -> None:
        """Ends the threads, fails what is still in flight and leaves the job."""
        if os.getpid() != self._pid:
            return  # A forked child has neither the thread nor the job.
        self.on_devices.finish(_JOIN_SECONDS)
        with self._one_ended:
            if self.closing:
                return
            self.closing = True
        completing = (self._completion, self._nested, self.gradients)
        ended = [each.close(_JOIN_SECONDS) for each in (*completing, self.messages)]
        self.callbacks.close(_JOIN_SECONDS)
        with self._one_ended:
            idle = self._one_ended.wait_for(lambda: self._in_flight == 0, _JOIN_SECONDS)
            if not (idle and all(ended)):
                return  # Somebody is stuck inside the library: closing under it would be worse.
        try:
            self.job.close()
        except BraidError:
            pass  # The daemon is gone: there is nothing left to leave.
        self.on_devices.let_go()

    def _make_room(self, count: int) -> None:
        """Waits until so many more may be in flight, and lets them be."""
        with self._one_ended:
            self._refuse_destroyed()
            if self._in_flight + count > _IN_FLIGHT_MAX and not self._one_ended.wait_for(
                lambda: self._in_flight + count <= _IN_FLIGHT_MAX, self._timeout_seconds
            ):
                raise DistBackendError(
                    f"none of {_IN_FLIGHT_MAX} operations of job {self.job.name} ended within "
                    f"{self._timeout_seconds:g} s"
                )
            self._in_flight += count

    def _refuse_destroyed(self) -> None:
        if self.closing:
            raise DistBackendError("the process group was destroyed")

    def _place_of(self, parent: Origin | None) -> tuple[Origin, int, int]:
        """What the next operation is, the dynamic tensor and the step. Holds the lock."""
        if parent is None:
            return Origin(self.job.name, self.sequence), self._streams.main, self._step
        origin = parent.next_child()
        return origin, *self._streams.place_of(origin)

    def _put(self, pending: Pending | InPieces, parent: Origin | None) -> None:
        """A completion thread sees it to its end."""
        thread = self._completion if parent is None else self._nested
        thread.start()
        thread.put(pending)

    def _abandon(self, pending: InPieces) -> None:
        """Not all pieces could be submitted, and the caller is told. Others may be at work with some."""
        if pending.has_begun:
            pending.give_up()
            self._put(pending, None)
        else:
            self.leave(pending.count)

    def _has_ended(self, pending: Pending, timeout_ms: int) -> bool:
        """Within that time; true as well where completing it would end with an error."""
        try:
            if self.closing or timeout_ms == 0:
                return self.closing or self.job.test(pending.ticket)
            return self.job.wait_briefly(pending.ticket, timeout_ms)
        except BraidError:
            return True

    def _complete(self, pending: Pending | InPieces) -> None:
        """Waits for one operation, copies its result out and finishes its work."""
        if isinstance(pending, InPieces):
            self._complete_pieces(pending)
            return
        error: Exception | None = None
        try:
            if pending.meanwhile is not None:
                pending.meanwhile()
            if isinstance(pending.unpack, torch.Tensor):
                self.take(pending.ticket, pending.unpack.data_ptr(), pending.unpack.nbytes)
            else:
                self.wait(pending.ticket)
                if pending.unpack is not None:
                    pending.unpack(self.job, pending.ticket)
                self.job.release(pending.ticket)
            if pending.memory is not None:
                self.arena.give_back(pending.memory)
        except BraidError as cause:
            error = self._failed(pending, cause)
        except Exception as cause:
            error = cause
        except BaseException:
            self.leave()  # What a signal's handler raised. Nobody waits for this operation any more.
            raise
        self.leave()
        pending.work.finish(error)

    def _complete_pieces(self, pending: InPieces) -> None:
        """The same of an operation that is cut."""
        try:
            error = pending.complete()
        finally:
            self.leave(pending.count)
        pending.work.finish(error)

    def wait(self, ticket: int) -> None:
        """Waits for the end of an operation; raises its error, or one if the group is closed."""
        while not self.job.wait_briefly(ticket, _PIECE_MS):
            self._refuse_closing()

    def take(self, ticket: int, address: int, nbytes: int) -> None:
        """The same, and then copies the result and releases the ticket."""
        while not self.job.take_briefly(ticket, _PIECE_MS, address, nbytes):
            self._refuse_closing()

    def _refuse_closing(self) -> None:
        if self.closing:
            raise DistBackendError(
                f"the process group was destroyed while an operation of job {self.job.name} was in "
                "flight"
            )

    def enter(self) -> None:
        """Until leave() the job stays open."""
        with self._one_ended:
            self._refuse_destroyed()
            self._in_flight += 1

    def leave(self, count: int = 1) -> None:
        with self._one_ended:
            before = self._in_flight
            self._in_flight = before - count
            # Those whom close() and _make_room() wait for: all others have no one to wake.
            if self.closing or before > _IN_FLIGHT_MAX - PIECES_MAX:
                self._one_ended.notify_all()

    def _failed(self, pending: Pending, cause: BraidError) -> DistBackendError:
        # The input is not reused: the daemon may still be reading it.
        try:
            self.job.release(pending.ticket)
        except BraidError:
            pass  # The first error is the one to tell.
        return as_distributed(cause)


def _complete_itself(item: Any) -> None:
    item.complete()
