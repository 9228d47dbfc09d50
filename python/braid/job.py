# SPDX-License-Identifier: Apache-2.0
"""One trainer's membership in a job, as a Python object over libbraid."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from ctypes import byref, c_int, c_uint64, c_void_p
from typing import Any

from braid import _abi
from braid._abi import Collective, Operation, Reduction, Update
from braid._arguments import as_number, as_text, milliseconds
from braid._devices import DeviceMixin
from braid._inputs import input_of, splits_of
from braid._library import library
from braid._messages import MessagesMixin
from braid._open_jobs import add_open_job, reason_of_end, remove_open_job
from braid._questions import wait_for_answer
from braid._registering import Memory, RegisteringMixin, TensorSpec
from braid._results import ResultsMixin
from braid._telling import TellingMixin
from braid.errors import DeadlineExceededError, InvalidArgumentError, error_of
from braid.repeated import RepeatedDeviceOperation, RepeatedOperation, RepeatedUpdate

# A wait is cut into pieces: handlers of signals run when the main thread is back in Python, and
# close() is noticed.
_WAIT_PIECE_MS = 200
_DEFAULT_TIMEOUT_MS = 300_000
_OPERATION_BYTES = ctypes.sizeof(Operation)


class Job(RegisteringMixin, ResultsMixin, MessagesMixin, DeviceMixin, TellingMixin):
    """Joins a job and waits until all its ranks have; close() or the end of `with` leaves it.

    So does the end of the interpreter, also after sys.exit() or an uncaught exception: if others
    still wait for this rank, the job then fails for them, and they are told that it has ended.

    All methods may be called from any thread; close() must come after the others have returned.
    Timeouts are seconds; None means the job's own timeout (300 s unless given here).

    `token` is the job's secret, the same on all ranks (without it BRAID_JOB_TOKEN): who gives
    another one joins another job, even under the same name. Without any, ranks that run as the
    same user belong together.

    `master_address` and `master_node` are where the ranks meet: rank 0's daemon, as `master()` says
    it there. Without `master_node`, whichever daemon is found at the address.

    `while_opening` is called several times a second while other ranks are waited for; what it
    raises ends the attempt.
    """

    def __init__(
        self,
        name: str,
        rank: int,
        world_size: int,
        *,
        master_address: str = "127.0.0.1",
        socket_path: str | None = None,
        timeout: float | None = None,
        arena_bytes: int = 0,
        token: str | None = None,
        master_node: int = 0,
        while_opening: Callable[[], None] | None = None,
    ) -> None:
        self._handle: int | None = None
        self._library = library()
        # Held during a registration, which goes on where a signal's handler ends the wait for it.
        self._registering = threading.Lock()
        self._opening_levels = threading.Lock()
        self._specs: dict[int, TensorSpec] = {}  # by handle
        self._opened_timeout_ms = milliseconds(timeout) or _DEFAULT_TIMEOUT_MS
        self._timeout_ms = self._opened_timeout_ms
        self.name = name
        self.master_address = master_address
        self.socket_path = socket_path
        self.rank = rank
        self.world_size = world_size
        options = _abi.JobOptions(
            struct_size=ctypes.sizeof(_abi.JobOptions),
            socket_path=as_text("the socket's path", socket_path) if socket_path else None,
            name=as_text("the job's name", name),
            rank=as_number("the rank", rank, 32),
            world_size=as_number("the world size", world_size, 32),
            master_address=as_text("the master's address", master_address),
            timeout_ms=milliseconds(timeout),
            arena_bytes=arena_bytes,
            token=as_text("the job's token", token) if token else None,
            master_node=master_node,
        )
        handle = c_void_p()
        self._check(self._library.braid_open_start(byref(options), byref(handle)))
        try:
            self._wait_until_open(handle, while_opening)
            self._check(self._library.braid_set_patience(handle, _WAIT_PIECE_MS))
        except BaseException:  # Also what a signal's handler raises.
            self._library.braid_close(handle)
            raise
        self._handle = handle.value
        # How many nodes the ranks are on; 0: the daemon is older and does not say.
        self.nodes = self._library.braid_nodes(handle)
        add_open_job(handle.value, self._library)

    def _wait_until_open(
        self, handle: c_void_p, meanwhile: Callable[[], None] | None
    ) -> None:
        done = c_int()
        while True:
            self._check(self._library.braid_open_wait(handle, _WAIT_PIECE_MS, byref(done)))
            if done.value:
                return
            if meanwhile is not None:
                meanwhile()

    @property
    def is_open(self) -> bool:
        return self._handle is not None

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the job. Operations in flight end as cancelled. A second call does nothing."""
        handle, self._handle = self._handle, None
        # One that is being left at exit is not freed under the thread that does it.
        if handle is not None and remove_open_job(handle):
            reason = reason_of_end()
            wait_for_answer(lambda: self._leave_and_free(handle, reason))

    def _leave_and_free(self, handle: int, reason: bytes | None) -> int:
        code = self._library.braid_leave(handle, reason)
        if code:
            return code
        with self._registering, self._opening_levels:  # They have ended with the membership.
            return self._library.braid_close(handle)

    def check(self) -> None:
        """Raises what has ended the job, if it has failed: for who waits by other means than this
        object's. Never blocks."""
        self._check(self._library.braid_check(self._open()))

    def set_timeout(self, timeout: float | None) -> None:
        """For operations that this rank submits from now on and that name none; None: as at first."""
        timeout_ms = milliseconds(timeout)
        self._check(self._library.braid_set_timeout(self._open(), timeout_ms))
        self._timeout_ms = timeout_ms or self._opened_timeout_ms

    def extend_timeout(self, more: float) -> None:
        """So much beside it for those that are submitted until the first of them has ended."""
        self._check(self._library.braid_extend_timeout(self._open(), milliseconds(more)))

    def submit(
        self,
        tensor: int,
        step: int,
        input: Any = None,
        *,
        collective: int = Collective.ALL_REDUCE,
        reduction: int = Reduction.SUM,
        root: int = 0,
        dtype: int | None = None,
        count: int | None = None,
        timeout: float | None = None,
        input_splits: Sequence[int] | None = None,
        output_splits: Sequence[int] | None = None,
        update: Update | None = None,
    ) -> int:
        """Hands one operation to the daemon and returns its ticket.

        `input` is Memory, an address, or any object with a contiguous buffer (array, numpy),
        from which dtype and count are then taken where the tensor is dynamic and they are not
        given. A buffer outside the arenas is copied before this returns. The splits are those of
        an all-to-all whose parts differ in size: elements to, and from, each rank. `update` goes
        with every operation of a tensor with state_slots, and with no other.
        """
        given = input_of(
            input, collective, self._specs.get(tensor), dtype, count, input_splits,
            self.world_size, root == self.rank,
        )  # fmt: skip
        return self.submit_raw(
            collective, tensor, step, reduction, root, given.dtype, milliseconds(timeout),
            given.count, given.address, splits_of(input_splits, self.world_size),
            splits_of(output_splits, self.world_size), update,
        )  # fmt: skip

    def submit_raw(
        self,
        collective: int,
        tensor: int,
        step: int,
        reduction: int,
        root: int,
        dtype: int,
        timeout_ms: int,
        count: int,
        address: int | None,
        input_splits: Any = None,
        output_splits: Any = None,
        update: Update | None = None,
    ) -> int:
        """submit() without conveniences: the fields of braid_operation in their order."""
        operation = Operation(
            _OPERATION_BYTES, collective, tensor, step, reduction, root, dtype, timeout_ms,
            count, address, ctypes.cast(input_splits, c_void_p) if input_splits else None,
            ctypes.cast(output_splits, c_void_p) if output_splits else None,
            ctypes.addressof(update) if update is not None else None,
        )  # fmt: skip
        ticket = c_uint64()
        self._insist(
            lambda: self._library.braid_submit(self._open(), byref(operation), byref(ticket)),
            timeout_ms,
        )
        return ticket.value

    def repeated(self, tensor: int, memory: Memory, reduction: int = 0) -> RepeatedOperation:
        """The all-reduce of a registered tensor from one place in the arena, step after step."""
        return RepeatedOperation(self, tensor, memory, reduction)

    def repeated_update(self, tensor: int, memory: Memory) -> RepeatedUpdate:
        """The same, as an average, of a tensor with state_slots; its `update` is changed in place."""
        return RepeatedUpdate(self, tensor, memory)

    def repeated_device(
        self, tensor: int, reduction: int = 0, update: Update | None = None
    ) -> RepeatedDeviceOperation:
        """The same from memory of a GPU, of a tensor with or without state_slots."""
        return RepeatedDeviceOperation(self, tensor, reduction, update)

    def test(self, ticket: int) -> bool:
        """True when the operation has ended well; raises when it has ended with an error."""
        done = c_int()
        self._check(self._library.braid_test(self._open(), ticket, byref(done)))
        return bool(done.value)

    def wait(self, ticket: int, timeout: float | None = None) -> None:
        """Waits for the operation: at most `timeout` seconds, or until its own deadline."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            piece_ms = _WAIT_PIECE_MS
            if end is not None:
                piece_ms = min(piece_ms, max(1, int((end - time.monotonic()) * 1000)))
            if self.wait_briefly(ticket, piece_ms):
                return
            if end is not None and time.monotonic() >= end:
                raise DeadlineExceededError(
                    f"ticket {ticket} of job {self.name} is still in flight after {timeout:g} s"
                )

    def wait_briefly(self, ticket: int, timeout_ms: int) -> bool:
        """False when the operation is still in flight after `timeout_ms`; raises its error."""
        code = self._library.braid_wait(self._open(), ticket, timeout_ms)
        if code == DeadlineExceededError.code:
            # The same code says that the operation's own deadline has passed, and it may have
            # ended since: ask which it is.
            done = c_int()
            code = self._library.braid_test(self._open(), ticket, byref(done))
            if not done.value:
                return False
        if code:
            self._check(code)
        return True

    def release(self, ticket: int) -> None:
        """Gives the result back. Every ticket that was waited for must be released."""
        code = self._library.braid_release(self._open(), ticket)
        if code:
            self._check(code)

    def take_briefly(self, ticket: int, timeout_ms: int, address: int, nbytes: int) -> bool:
        """Waits, copies the whole result (all-gather: in rank order) to `address`, and releases the
        ticket. False: it is still in flight after `timeout_ms`. After an error, release() it."""
        code = self._library.braid_take(self._open(), ticket, timeout_ms, address, nbytes)
        if code == DeadlineExceededError.code:
            # As in wait_briefly(). One that has ended well since is taken by the next call.
            done = c_int()
            code = self._library.braid_test(self._open(), ticket, byref(done))
            if not done.value or not code:
                return False
        if code:
            self._check(code)
        return True

    def _insist(self, call: Callable[[], int], timeout_ms: int = 0) -> None:
        """Calls again what the daemon is not ready for yet, as braid_set_patience() tells. Between
        the calls handlers of signals run."""
        code = call()
        if not code:
            return
        end = time.monotonic() + (timeout_ms or self._timeout_ms) / 1000
        while code == DeadlineExceededError.code and time.monotonic() < end:
            self.check()
            code = call()
        self._check(code)

    def _open(self) -> int:
        if self._handle is None:
            raise InvalidArgumentError(f"job {self.name} is closed")
        return self._handle

    def _message(self) -> str:
        return self._library.braid_error_message().decode(errors="replace")

    def _check(self, code: int) -> None:
        if code:
            raise error_of(code, self._message())
