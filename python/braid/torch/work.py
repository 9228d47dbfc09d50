# SPDX-License-Identifier: Apache-2.0
"""Work objects: what a collective returns, and how its end reaches whoever waits.

Two facts shape this file (torch 2.5 to 2.15). A Work made by `_create_work_from_future` does not
raise from wait() when its future holds an error, so callers in Python get `BraidWork`, which does.
And before torch 2.9 C++ keeps a Python-made Work alive no longer than the call that returned it, so
callers in C++ get a Work made from the future there; DDP looks at nothing but the future anyway.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import FrameType
from typing import Any

import torch
from torch._C._distributed_c10d import _create_work_from_future
from torch.distributed import DistBackendError, Work

_CPP_KEEPS_PYTHON_WORK = tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 9)
_ZERO = timedelta(0)
_TORCH_DISTRIBUTED = "torch.distributed.distributed_c10d"
# Between all_reduce() and its caller there is a wrapper that logs.
_JOIN_FRAMES = 3


class BraidWork(Work):
    """One operation on its way. It ends once, by finish(); anyone may wait() for that."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self._value = value
        self._error: Exception | None = None
        self._ended = False
        self._future: torch.futures.Future | None = None
        self._promise: torch.futures.Future | None = None
        # Held until the end: a bare lock is the cheapest thing that wakes a waiter.
        self._gate = threading.Lock()
        self._gate.acquire()
        self._state = threading.Lock()

    def finish(self, error: Exception | None = None) -> None:
        """Ends the operation, well or with `error`."""
        with self._state:
            self._error = error
            self._ended = True
            promise = self._promise
        self._gate.release()
        if promise is not None:
            promise.set_result(self._value if error is None else error)

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

    def is_completed(self) -> bool:
        return self._ended

    def is_success(self) -> bool:
        return self._ended and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def synchronize(self) -> None:
        self.wait()

    def block_current_stream(self) -> None:
        """CUDA results are on the current stream before the Work exists, so this only waits."""
        self.wait()

    def result(self) -> Any:
        self.wait()
        return self._value

    def source_rank(self) -> int:
        raise RuntimeError("only a receive has a source rank")

    def get_future(self) -> torch.futures.Future:
        """A future with the output tensors; an error arrives as a RuntimeError with our text."""
        with self._state:
            if self._future is None:
                self._promise = torch.futures.Future(devices=_devices_of(self._value))
                self._future = self._promise.then(value_or_raise)
                ended = self._ended
            else:
                ended = False
        if ended:
            self._promise.set_result(self._value if self._error is None else self._error)
        return self._future


class WorkList(Work):
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

    def synchronize(self) -> None:
        self.wait()

    def block_current_stream(self) -> None:
        self.wait()

    def result(self) -> list[Any]:
        return [tensor for work in self._works for tensor in work.result()]

    def get_future(self) -> torch.futures.Future:
        futures = [work.get_future() for work in self._works]
        return torch.futures.collect_all(futures).then(_joined_values)


class CopyBackWork(Work):
    """A receive of the inner group into CPU memory, copied to its own device by wait()."""

    def __init__(self, work: Work, copy_back: Callable[[], None]) -> None:
        super().__init__()
        self._work = work
        self._copy_back: Callable[[], None] | None = copy_back

    def wait(self, timeout: timedelta | None = None) -> bool:
        self._work.wait() if timeout is None else self._work.wait(timeout)
        copy_back, self._copy_back = self._copy_back, None
        if copy_back is not None:
            copy_back()
        return True

    def is_completed(self) -> bool:
        return self._work.is_completed()

    def is_success(self) -> bool:
        return self._work.is_success()

    def synchronize(self) -> None:
        self.wait()

    def source_rank(self) -> int:
        return self._work._source_rank()

    _source_rank = source_rank


def finished(value: Any) -> BraidWork:
    """A Work that has ended already."""
    work = BraidWork(value)
    work.finish()
    return work


def handed_out(work: Work) -> Work:
    """`work` in the form that the caller of the process group can keep."""
    if not isinstance(work, (BraidWork, WorkList)):
        return work  # Made by C++, which keeps its own.
    frame = _caller()
    by_python = frame is not None and frame.f_globals.get("__name__") == _TORCH_DISTRIBUTED
    if (by_python and not _for_join(frame)) or (_CPP_KEEPS_PYTHON_WORK and not by_python):
        return work
    return _create_work_from_future(work.get_future())


def _caller() -> FrameType | None:
    """Who called the method of the group: one of torch.distributed's Python functions, or else.

    Anything else may be C++ (DDP's reducer, functional collectives), which has no frame of its own.
    """
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__package__") == __package__:
        frame = frame.f_back
    return frame


def _for_join(frame: FrameType | None) -> bool:
    """True in DDP's join(), which hands the Work that it got from Python on to C++."""
    for _ in range(_JOIN_FRAMES):
        frame = frame.f_back if frame is not None else None
        if frame is not None and frame.f_code.co_name == "notify_join_context":
            return True
    return False


def value_or_raise(promise: torch.futures.Future) -> Any:
    value = promise.value()
    if isinstance(value, Exception):
        raise value
    return value


def _joined_values(future: torch.futures.Future) -> list[Any]:
    return [tensor for part in future.value() for tensor in part.value()]


def _devices_of(value: Any) -> list[torch.device]:
    tensors = [value] if isinstance(value, torch.Tensor) else value
    return sorted({t.device for t in tensors if t.is_cuda}, key=lambda device: device.index)
