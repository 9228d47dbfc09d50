# SPDX-License-Identifier: Apache-2.0
"""Send and receive on a torch whose gloo cannot start lazily (before 2.8).

Each pair of ranks that talks gets a gloo group of two, made by a thread of its own: send and
receive must return at once, also when the other rank comes to its side of it much later.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import DistBackendError, DistError, PrefixStore, Store, TCPStore, Work

from braid.torch.stores import underlying

_POLL_SECONDS_MIN = 0.001
_POLL_SECONDS_MAX = 0.05
_PIECE_SECONDS = 0.2
_CONNECT_SECONDS = 1.0
# What gloo hears of a death by itself, it hears soon.
_NEWS_SECONDS = 2.0


class Pairs:
    """The groups of two of one rank. Any thread may call.

    `name` sets the group's keys in the store apart from all others', on all ranks. `check` raises
    what has made waiting for another rank pointless.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        rank: int,
        make_group: Callable[[Store, int, int, timedelta], Any],
        timeout: timedelta,
        check: Callable[[], None],
    ) -> None:
        self._store = store
        self._name = name
        self._check = check
        self._rank = rank
        self._make_group = make_group
        self._timeout = timeout
        self._lock = threading.Lock()
        self._pairs: dict[int, _Pair] = {}

    def send(self, tensors: list[torch.Tensor], peer: int, tag: int) -> Work:
        return self._pair(peer).start("send", tensors, tag)

    def recv(self, tensors: list[torch.Tensor], peer: int, tag: int) -> Work:
        return self._pair(peer).start("recv", tensors, tag)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int) -> Work:
        raise NotImplementedError(
            "receiving from any source needs torch 2.8 or newer when the backend is braid; "
            "give the source rank, or use a gloo group"
        )

    def set_timeout(self, timeout: timedelta) -> None:
        with self._lock:
            self._timeout = timeout
            pairs = list(self._pairs.values())
        for pair in pairs:
            pair.set_timeout(timeout)

    def close(self) -> None:
        with self._lock:
            pairs, self._pairs = self._pairs, {}
        for pair in pairs.values():
            pair.close()

    def _pair(self, peer: int) -> _Pair:
        with self._lock:
            if peer not in self._pairs:
                self._pairs[peer] = _Pair(
                    self._store, self._name, self._rank, peer, self._make_group, self._timeout,
                    self._check,
                )  # fmt: skip
            return self._pairs[peer]


class _Pair:
    def __init__(
        self,
        store: Store,
        name: str,
        rank: int,
        peer: int,
        make_group: Callable[[Store, int, int, timedelta], Any],
        timeout: timedelta,
        check: Callable[[], None],
    ) -> None:
        low, high = sorted((rank, peer))
        self._prefix = f"braid/pairs/{name}/{low}-{high}"
        self._store = store
        self._rank = rank
        self._peer = peer
        self._make_group = make_group
        self._timeout = timeout
        self._check = check
        self._lock = threading.Lock()
        self._waiting: list[_PairWork] = []
        self._group: Any = None
        self._error: Exception | None = None
        self._closed = False
        self._thread = threading.Thread(
            target=self._connect, name=f"braid-pair-{peer}", daemon=True
        )
        self._thread.start()

    def start(self, method: str, tensors: list[torch.Tensor], tag: int) -> Work:
        """Starts a transfer, or queues it until the other rank is there. Keeps the order."""
        with self._lock:
            # In a group of two, the other one is 1 for the lower rank and 0 for the higher.
            other = int(self._peer > self._rank)
            work = _PairWork(method, tensors, other, tag, self._peer, self._check)
            if self._group is not None or self._error is not None:
                work.begin(self._group, self._error)
            else:
                self._waiting.append(work)
            return work

    def set_timeout(self, timeout: timedelta) -> None:
        with self._lock:
            self._timeout = timeout
            if self._group is not None:
                self._group._set_default_timeout(timeout)

    def close(self) -> None:
        with self._lock:
            self._closed = True
        if self._thread is not threading.current_thread():
            self._await_thread()
        with self._lock:
            self._group = None
            self._error = self._error or DistBackendError("the process group was destroyed")

    def _await_thread(self) -> None:
        """It may wait in gloo for a rank that has died, and hears of it at the timeout only."""
        end = time.monotonic() + self._timeout.total_seconds()
        while self._thread.is_alive() and time.monotonic() < end:
            self._thread.join(_PIECE_SECONDS)
            try:
                self._check()
            except Exception:
                self._thread.join(_NEWS_SECONDS)
                return

    def _connect(self) -> None:
        group, error = None, None
        try:
            store = PrefixStore(self._prefix, self._own_connection())
            self._meet(store)
            group = self._make_group(store, int(self._rank > self._peer), 2, self._timeout)
        except Exception as cause:
            error = cause
        with self._lock:
            self._group, self._error = group, error
            for work in self._waiting:
                work.begin(group, error)
            self._waiting.clear()

    def _own_connection(self) -> Store:
        """A connection for each pair: making its group waits for the other rank, and a TCP store's
        connection is held while somebody waits. Over a common one, ranks in a ring would each wait
        for what the next one cannot give."""
        store = underlying(self._store)
        if not isinstance(store, TCPStore):
            return store  # The others hold nothing while they wait.
        end = time.monotonic() + self._timeout.total_seconds()
        while True:
            # The store ends with its host, which may be the other rank.
            try:
                piece = timedelta(seconds=_CONNECT_SECONDS)
                own = TCPStore(store.host, store.port, None, False, piece, wait_for_workers=False)
                own.set_timeout(self._timeout)
                return own
            except DistError:
                self._refuse_to_wait()
                if time.monotonic() > end:
                    raise

    def _meet(self, store: Store) -> None:
        """Waits until the other rank is at this point too, and can be told to stop meanwhile."""
        store.set(str(self._rank), "here")
        end = time.monotonic() + self._timeout.total_seconds()
        pause = _POLL_SECONDS_MIN
        while not store.check([str(self._peer)]):
            self._refuse_to_wait()
            if time.monotonic() > end:
                raise DistBackendError(
                    f"rank {self._peer} did not come to send to or receive from "
                    f"rank {self._rank} within {self._timeout}"
                )
            time.sleep(pause)
            pause = min(pause * 2, _POLL_SECONDS_MAX)


    def _refuse_to_wait(self) -> None:
        if self._closed:
            raise DistBackendError("the process group was destroyed")
        self._check()


class _PairWork(Work):
    """A transfer that may not have begun yet."""

    def __init__(
        self, method: str, tensors: list[torch.Tensor], other: int, tag: int, peer: int,
        check: Callable[[], None],
    ) -> None:  # fmt: skip
        super().__init__()
        self._method = method
        self._tensors = tensors
        self._other = other
        self._tag = tag
        self._peer = peer
        self._check = check
        self._begun = threading.Event()
        self._work: Any = None
        self._error: Exception | None = None

    def begin(self, group: Any, error: Exception | None) -> None:
        try:
            if error is not None:
                raise error
            self._work = getattr(group, self._method)(self._tensors, self._other, self._tag)
        except Exception as cause:
            self._error = cause
        self._begun.set()

    def wait(self, timeout: timedelta | None = None) -> bool:
        seconds = timeout.total_seconds() if timeout is not None and timeout.days >= 0 else None
        end = time.monotonic() + seconds if seconds else None
        while not self._begun.wait(_PIECE_SECONDS):
            self._check()
            if end is not None and time.monotonic() > end:
                raise DistBackendError(f"rank {self._peer} is not there after {timeout}")
        if self._error is not None:
            raise self._error
        return self._work.wait(timeout) if seconds else self._work.wait()

    def is_completed(self) -> bool:
        if not self._begun.is_set():
            return False
        return self._error is not None or self._work.is_completed()

    def is_success(self) -> bool:
        return self._begun.is_set() and self._error is None and self._work.is_success()

    def synchronize(self) -> None:
        self.wait()

    def source_rank(self) -> int:
        return self._peer

    _source_rank = source_rank
