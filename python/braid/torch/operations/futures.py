# SPDX-License-Identifier: Apache-2.0
"""Futures of this package's operations: what becomes of the callbacks that scripts give them.

torch runs a future's callback on the thread that ends the future, or at once on the thread that
gives it if the future has ended already. Both are wrong for a callback that starts collectives (see
callbacks.py), and a future of torch cannot be told otherwise: it is made in C++, which returns its
base class from `then`, and only `then` can make one that ends with an error. So the two methods that
take callbacks are replaced in that class, and so is wait(), in which handlers of signals would not
run; futures that are not ours are left to the originals.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from braid.torch.operations import devices
from braid.torch.operations.callbacks import CallbackThreads, Origin
from braid.torch.operations.devices import WAITS, SideStreams

_log = logging.getLogger("braid")
_Future = torch._C.Future
_then = _Future.then
_add_done_callback = _Future.add_done_callback
_wait = _Future.wait


class Source(NamedTuple):
    """Where a future comes from: its operation, and the threads for callbacks."""

    origin: Origin
    threads: CallbackThreads
    devices: list[torch.device]


class Failure(NamedTuple):
    """What a promise is set to where its future shall raise."""

    error: BaseException

    def __reduce__(self) -> Any:
        # A future of CUDA tensors looks for some in its value, by pickling that.
        return Failure, (None,)


_sources: weakref.WeakKeyDictionary[Any, Source] = weakref.WeakKeyDictionary()


def future_of(promise: torch.futures.Future, source: Source | None) -> torch.futures.Future:
    """A future that ends as `promise` does, or with the error if that is set to a Failure."""
    future = _then(promise, _value_or_raise)
    if source is not None:
        _sources[future] = source
    return future


def mapped(
    future: torch.futures.Future,
    function: Callable[[torch.futures.Future], Any],
    like: Sequence[torch.futures.Future] = (),
) -> torch.futures.Future:
    """future.then() for a function of ours, which is quick and waits for nothing.

    The result comes from where `future` does, or else the last one of `like` that is ours.
    """
    result = _then(future, function)
    for each in (*like, future):
        if each in _sources:
            _sources[result] = _sources[each]
    return result


def _value_or_raise(promise: torch.futures.Future) -> Any:
    value = promise.value()
    if isinstance(value, Failure):
        raise value.error
    return value


def _then_elsewhere(self: Any, callback: Callable[[Any], Any]) -> Any:
    source = _sources.get(self)
    if source is None:
        return _then(self, callback)
    promise = devices.cuda.future(source.devices)
    result = future_of(promise, source)

    def run() -> None:
        with _beside(source):
            try:
                _synchronize(self, source)
                value = callback(self)
            except BaseException as error:
                value = Failure(error)
            promise.set_result(value)

    _add_done_callback(self, lambda _: source.threads.run(source.origin, run))
    return result


def _add_done_callback_elsewhere(self: Any, callback: Callable[[Any], None]) -> None:
    source = _sources.get(self)
    if source is None:
        _add_done_callback(self, callback)
        return

    def run() -> None:
        try:
            with _beside(source):
                _synchronize(self, source)
                callback(self)
        except BaseException:
            # As torch: there is nobody to tell.
            _log.exception("a callback of a collective's future failed")

    _add_done_callback(self, lambda _: source.threads.run(source.origin, run))


def _wait_in_python(self: Any) -> Any:
    """The main thread waits where handlers of signals run: the original is a wait in C++."""
    if self in _sources and not self.done():
        if threading.current_thread() is threading.main_thread():
            ended = threading.Event()
            _add_done_callback(self, lambda _: ended.set())
            ended.wait()
    return _wait(self)


def _beside(source: Source) -> contextlib.AbstractContextManager[Any]:
    """Streams for a callback, as torch gives it some: what it starts on a GPU, and waits for there, must
    not come into the way of what the script computes."""
    if not source.devices:
        return contextlib.nullcontext()
    streams = contextlib.ExitStack()
    for device in source.devices:
        streams.enter_context(SideStreams(WAITS).on(device))
    return streams


def _synchronize(future: Any, source: Source) -> None:
    """Lets this thread's CUDA streams wait for the values, as torch does it for callbacks."""
    if source.devices:
        try:
            future.wait()
        except Exception:
            pass  # The callback finds the error itself.


_Future.then = _then_elsewhere
_Future.wait = _wait_in_python
_Future.add_done_callback = _add_done_callback_elsewhere
