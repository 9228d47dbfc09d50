# SPDX-License-Identifier: Apache-2.0
"""Work objects: what a collective returns, and how its end reaches the waiting thread.

Two facts shape this file (torch 2.7 to 2.15). A Work made by `_create_work_from_future` does not
raise from wait() when its future holds an error, so callers in Python get `BraidWork`, which does.
And before torch 2.9 C++ keeps a Python-made Work alive no longer than the call that returned it, so
callers in C++ get a Work made from the future there; DDP looks at nothing but the future anyway. A
Work that Python hands on to C++ later is kept no longer in any torch: the one place where torch does
that, in DDP's join(), is given another one there.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from datetime import timedelta
from types import FrameType
from typing import Any

import torch
from torch._C._distributed_c10d import _create_work_from_future
from torch.distributed import DistBackendError, Reducer, Work

from braid.torch.operations import devices
from braid.torch.operations.callbacks import CallbackThreads, Origin
from braid.torch.operations.devices import StreamMarks
from braid.torch.operations.flight_record import Entry
from braid.torch.operations.futures import Failure, Source, future_of, mapped

_CPP_KEEPS_PYTHON_WORK = tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 9)
_ZERO = timedelta(0)
_TORCH_DISTRIBUTED = "torch.distributed.distributed_c10d"
# Whose frames may be all that C++ has above it.
_GROUP_MODULES = ("carrying", "exchanges", "fallback", "peers", "process_group")
_OF_THE_GROUP = frozenset((
    __name__, "braid.torch.operations.untraced", *(f"braid.torch.group.{n}" for n in _GROUP_MODULES)
))  # fmt: skip


class WaitedWork(Work):
    """A work whose wait() is all that there is to do."""

    def synchronize(self) -> None:
        self.wait()

    def block_current_stream(self) -> None:
        self.wait()


class FutureWork(WaitedWork):
    """A work of this package that has a future."""


class WorkAround(WaitedWork):
    """Waits for another work, and does something beside it."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def is_completed(self) -> bool:
        return self._work.is_completed()

    def is_success(self) -> bool:
        return self._work.is_success()

    def source_rank(self) -> int:
        return self._work._source_rank()

    _source_rank = source_rank


class BraidWork(FutureWork):
    """One operation on its way. It ends once, by finish(); anyone may wait() for that."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self._value = value
        self._error: Exception | None = None
        self._ended = False
        self._future: torch.futures.Future | None = None
        self._promise: torch.futures.Future | None = None
        self._origin: Origin | None = None
        self._threads: CallbackThreads | None = None
        self._entry: Entry | None = None
        # Held until the end: a bare lock is the cheapest thing that wakes a waiter.
        self._gate = threading.Lock()
        self._gate.acquire()
        self._state = threading.Lock()

    def comes_from(self, origin: Origin, threads: CallbackThreads) -> None:
        """Which operation this is, and where its callbacks run. Before anyone else has it."""
        self._origin = origin
        self._threads = threads

    def is_recorded_by(self, entry: Entry) -> None:
        """In the flight record. Before the operation begins."""
        self._entry = entry

    def finish(self, error: Exception | None = None) -> None:
        """Ends the operation, well or with `error`."""
        if self._entry is not None:
            self._entry.end(error)
        with self._state:
            self._error = error
            self._ended = True
            promise = self._promise
        self._gate.release()
        if promise is not None:
            promise.set_result(self._value if error is None else Failure(error))

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits for the end (the operation's own deadline bounds it) and raises its error."""
        if not self._ended:
            seconds = timeout.total_seconds() if timeout is not None and timeout > _ZERO else -1
            if not self._gate.acquire(timeout=seconds):
                raise DistBackendError(f"the operation is still in flight after {seconds:g} s")
            self._gate.release()
        if self._error is not None:
            raise self._error
        return True

    def has_ended(self) -> bool:
        """Without looking whether it could end now."""
        return self._ended

    def is_completed(self) -> bool:
        return self._ended

    def is_success(self) -> bool:
        return self._ended and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def result(self) -> Any:
        self.wait()
        return self._value

    def source_rank(self) -> int:
        raise RuntimeError("only a receive has a source rank")

    def get_future(self) -> torch.futures.Future:
        """A future with the output tensors; an error arrives as a RuntimeError with our text."""
        with self._state:
            if self._future is None:
                on_devices = devices.cuda.devices_of(self._value)
                self._promise = devices.cuda.future(on_devices)
                source = None
                if self._origin is not None and self._threads is not None:
                    source = Source(self._origin, self._threads, on_devices)
                self._future = future_of(self._promise, source)
                ended = self._ended
            else:
                ended = False
        if ended:
            error = self._error
            self._promise.set_result(self._value if error is None else Failure(error))
        return self._future


class WorkList(FutureWork):
    """Several works as one."""

    def __init__(self, works: Sequence[Work]) -> None:
        super().__init__()
        self._works = list(works)

    def wait(self, timeout: timedelta | None = None) -> bool:
        for work in self._works:
            work.wait() if timeout is None else work.wait(timeout)
        return True

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def result(self) -> list[Any]:
        return [tensor for work in self._works for tensor in work.result()]

    def get_future(self) -> torch.futures.Future:
        futures = [work.get_future() for work in self._works]
        return mapped(torch.futures.collect_all(futures), _joined_values, like=futures)


class CopyBackWork(WorkAround):
    """What has its result in other memory, from where wait() copies it: a receive of the inner group
    into CPU memory, for one."""

    def __init__(
        self, work: Work, tensors: Sequence[torch.Tensor], copies: Sequence[torch.Tensor]
    ) -> None:
        """`copies` are where `work` has its result, `tensors` where it belongs."""
        super().__init__(work)
        self._pairs = list(zip(tensors, copies))
        # The copy may be on another stream than what the tensors were used for until now.
        self._devices = devices.cuda.devices_of(tensors)
        self._before = StreamMarks(self._devices)
        self._after: StreamMarks | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        self._work.wait() if timeout is None else self._work.wait(timeout)
        pairs, self._pairs = self._pairs, []
        if pairs:
            self._before.let_current_streams_wait()
            for tensor, copy in pairs:
                tensor.data.copy_(copy)
            self._after = StreamMarks(self._devices)
        elif self._after is not None:
            self._after.let_current_streams_wait()  # Another stream may be current now.
        return True


def finished(value: Any) -> BraidWork:
    """A Work that has ended already."""
    work = BraidWork(value)
    work.finish()
    return work


def handed_out(work: Work) -> Work:
    """`work` in the form that the caller of the process group can keep."""
    if _CPP_KEEPS_PYTHON_WORK or _python_called():
        return work
    return kept_by_cpp(work)


def kept_by_cpp(work: Work) -> Work:
    """`work` in a form that C++ can keep although Python does not."""
    if not isinstance(work, FutureWork):
        return work  # Made by C++.
    return _create_work_from_future(work.get_future())


def _python_called() -> bool:
    """Whether one of torch.distributed's Python functions, or of this package's, called the method of
    the group.

    Anything else may be C++ (DDP's reducer, functional collectives), which has no frame of its own.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in _OF_THE_GROUP:
        frame = frame.f_back
    if frame is None:
        return False
    caller = frame.f_globals.get("__name__", "")
    return caller == _TORCH_DISTRIBUTED or caller.startswith("braid.torch.")


_set_forward_pass_work_handle = Reducer._set_forward_pass_work_handle


def _set_kept_forward_pass_work_handle(self: Any, work: Work, *args: Any, **kwargs: Any) -> None:
    """In join(), DDP's reducer keeps the all-reduce that counts the ranks which have inputs."""
    _set_forward_pass_work_handle(self, kept_by_cpp(work), *args, **kwargs)


Reducer._set_forward_pass_work_handle = _set_kept_forward_pass_work_handle


def _joined_values(future: torch.futures.Future) -> list[Any]:
    return [tensor for part in future.value() for tensor in part.value()]
