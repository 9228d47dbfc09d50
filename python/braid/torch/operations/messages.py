# SPDX-License-Identifier: Apache-2.0
"""Sends and receives of one process group: messages of its job between two ranks.

They end in any order. A thread that waits for one sees it through itself; one that nobody waits for is
ended by a thread of the group.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import torch
from torch.distributed import DistBackendError

from braid import ANY_RANK, BraidError, Memory
from braid.torch.operations.completion import AnyOrderThread
from braid.torch.operations.failures import as_distributed, timed_out
from braid.torch.operations.work import BraidWork

_PIECE_MS = 100
_CLAIM_SECONDS = 0.01
_ZERO = timedelta(0)


class Channel(NamedTuple):
    """Receives of one channel are alike: the first gets the first message."""

    source: int  # Or ANY_RANK.
    tag: int
    nbytes: int


class Message:
    """One end of a message that is under way. Who has `claim` may end it."""

    __slots__ = ("claim", "is_awaited", "memory", "ticket", "work")

    def __init__(self, ticket: int, memory: Memory | None) -> None:
        self.ticket = ticket
        self.memory = memory  # A send's.
        self.claim = threading.Lock()
        self.is_awaited = False  # By a thread that sees it through.
        self.work: MessageWork


class MessageWork(BraidWork):
    """A send, or a receive, which has a channel and to which `unpack` gives its result. `what` names it in
    errors."""

    def __init__(
        self, value: Any, what: str, messages: Messages, channel: Channel | None = None,
        unpack: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(value)
        self.what = what
        self.channel = channel
        self.unpack = unpack
        self.source = -1  # Whose message a receive has got.
        self._messages = messages
        self._message: Message

    def begins(self, message: Message) -> None:
        message.work = self
        self._message = message

    def wait(self, timeout: timedelta | None = None) -> bool:
        seconds = timeout.total_seconds() if timeout is not None and timeout > _ZERO else None
        if not self._ended:
            self._messages.see_through(self._message, self, seconds)
        return super().wait()

    def is_completed(self) -> bool:
        if not self._ended:
            self._messages.look(self._message, self)
        return self._ended

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def source_rank(self) -> int:
        if self.channel is None:
            return super().source_rank()
        self.wait()
        return self.source

    _source_rank = source_rank


class Messages:
    """The messages of one rank that are under way. Any thread may call.

    A receive for which wait() with a timeout has ended is given up: its tensor stays as it is, and the
    next receive of its channel takes its place.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._given_up: dict[Channel, deque[Message]] = defaultdict(deque)
        self._open = 0
        self._one_ended = threading.Condition(self._lock)
        self._thread = AnyOrderThread("braid-messages", lambda message: None, self._is_off)

    def send(self, peer: int, tag: int, nbytes: int, memory: Memory, work: MessageWork) -> None:
        """The first bytes of `memory`, which is given back at the end."""
        job = self._engine.job
        try:
            self._begin(
                lambda: job.send(peer, memory.address, tag=tag, nbytes=nbytes), memory, work
            )
        except BaseException:
            self._engine.arena.give_back(memory)  # The daemon has not seen it.
            raise

    def receive(self, work: MessageWork) -> None:
        channel = work.channel
        with self._lock:
            given_up = self._given_up.get(channel)
            message = given_up.popleft() if given_up else None
            if message is not None:
                self._open += 1
        if message is None:
            submit = self._engine.job.receive
            return self._begin(
                lambda: submit(channel.source, channel.nbytes, tag=channel.tag), None, work
            )
        work.begins(message)
        self._hand_back(message)

    def close(self, timeout_seconds: float) -> bool:
        """Ends the thread and all messages; False if a thread that waits for one has not noticed. The
        engine is closing."""
        ended = self._thread.close(timeout_seconds)
        with self._lock:
            return self._one_ended.wait_for(lambda: self._open == 0, timeout_seconds) and ended

    def see_through(self, message: Message, work: MessageWork, seconds: float | None) -> None:
        """Waits until `work` has ended; raises an error if it has not, after so many seconds."""
        end = None if seconds is None else time.monotonic() + seconds
        message.is_awaited = True
        while not message.claim.acquire(timeout=_CLAIM_SECONDS):
            if work.has_ended():
                return
            if end is not None and time.monotonic() > end:
                raise self._late(work, seconds)
        if work.has_ended():
            return
        try:
            is_over = self._ends_within(message, end)
        except BaseException:  # What a signal's handler has raised.
            self._hand_back(message)
            raise
        if is_over:
            return self._end(message)
        self._give_up(message, self._late(work, seconds))

    def look(self, message: Message, work: MessageWork) -> None:
        """Ends it if it is over, and nobody else is at it."""
        if not message.claim.acquire(blocking=False):
            return
        if work.has_ended():
            return
        if self._is_over(message, 0):
            return self._end(message)
        message.claim.release()

    def _begin(self, submit: Callable[[], int], memory: Memory | None, work: MessageWork) -> None:
        if self._engine.closing:
            raise DistBackendError("the process group was destroyed")
        try:
            message = Message(submit(), memory)
        except BraidError as error:
            raise as_distributed(error) from error
        with self._lock:
            self._open += 1
        work.begins(message)
        self._thread.start()
        self._thread.put(message)

    # For who has the claim.

    def _ends_within(self, message: Message, end: float | None) -> bool:
        while True:
            piece_ms = _PIECE_MS
            if end is not None:
                piece_ms = min(piece_ms, int((end - time.monotonic()) * 1000))
            if self._is_over(message, max(0, piece_ms)):
                return True
            if piece_ms <= 0:
                return False

    def _is_over(self, message: Message, timeout_ms: int) -> bool:
        """Within that time, well or with an error."""
        try:
            if self._engine.closing or timeout_ms == 0:
                return self._engine.closing or self._engine.job.test(message.ticket)
            return self._engine.job.wait_briefly(message.ticket, timeout_ms)
        except BraidError:
            return True

    def _late(self, work: MessageWork, seconds: float) -> DistBackendError:
        return timed_out(f"{work.what}: it has not ended within {seconds:g} s")

    def _give_up(self, message: Message, error: DistBackendError) -> None:
        work = message.work
        if work.channel is None:
            self._hand_back(message)  # What is sent may still be received.
            raise error
        with self._lock:
            self._given_up[work.channel].append(message)
            self._note_end()
        work.finish(error)

    def _hand_back(self, message: Message) -> None:
        message.is_awaited = False
        message.claim.release()
        self._thread.put(message)

    def _end(self, message: Message) -> None:
        engine, work = self._engine, message.work
        error: Exception | None = None
        try:
            engine.wait(message.ticket)
            if work.channel is not None:
                work.source = engine.job.source(message.ticket)
            if isinstance(work.unpack, torch.Tensor):
                engine.take(message.ticket, work.unpack.data_ptr(), work.unpack.nbytes)
            else:
                if work.unpack is not None:
                    work.unpack(engine.job, message.ticket)
                engine.job.release(message.ticket)
            if message.memory is not None:
                engine.arena.give_back(message.memory)
        except BraidError as cause:
            # A send's memory is not used again: the daemon may still be reading it.
            error = as_distributed(cause)
            self._forget(message.ticket)
        except Exception as cause:
            error = cause
        with self._lock:
            self._note_end()
        work.finish(error)

    def _note_end(self) -> None:
        self._open -= 1
        if self._engine.closing:
            self._one_ended.notify_all()

    def _forget(self, ticket: int) -> None:
        try:
            self._engine.job.release(ticket)
        except BraidError:
            pass  # The first error is the one to tell.

    def _is_off(self, message: Message, timeout_ms: int) -> bool:
        """Whether the thread has nothing to do with the message any more."""
        if message.is_awaited or message.work.has_ended():
            return True
        if not message.claim.acquire(blocking=False):
            return False  # Somebody looks at it.
        if self._is_over(message, timeout_ms):
            self._end(message)
            return True
        message.claim.release()
        return False
