# SPDX-License-Identifier: Apache-2.0
"""The first transfer between two ranks over gloo, which connects them.

gloo does that inside the call, where no timeout of the script is heard, and one of the two ranks
waits there until the other one comes. So both first say through the store that they have come, and
only then call gloo. Until then a transfer stands in a queue, which its timeout can take it from.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable

from torch.distributed import DistBackendError, DistError, PrefixStore, Store

from braid.torch.group.job_watch import JobWatch
from braid.torch.group.transfers import Transfer

_PAUSE_SECONDS_MIN = 0.001
_PAUSE_SECONDS_MAX = 0.5
# A rank is noticed at most this share of its lateness after it has come.
_PAUSE_SHARE = 0.05
_JOIN_SECONDS = 10.0
# gloo connects in milliseconds where both ranks are there.
_BEGIN_SECONDS = 2.0


class FirstContacts:
    """The ranks with which one rank of a group sends and receives. Any thread may call."""

    def __init__(self, store: Store, rank: int, watch: JobWatch) -> None:
        self._store = PrefixStore("braid/contacts", store)
        self._rank = rank
        self._watch = watch
        self._lock = threading.Lock()
        self._peers: dict[int, _Peer] = {}
        self._waits_for_any = False
        self._meeting: threading.Thread | None = None
        self._beginning: list[threading.Thread] = []
        self._closing = False
        # A transfer was ordered, or close() was called.
        self._news = threading.Event()

    def order(self, transfer: Transfer) -> Transfer:
        """Begins `transfer`: at once if the other rank is known, or when it has come. Raises what
        beginning it at once raises."""
        with self._lock:
            if self._closing:
                raise _destroyed()
            peer = self._peers.setdefault(transfer.peer, _Peer())
            if not peer.is_known:
                peer.orders.append(transfer)
                peer.ordered_at = time.monotonic()
                self._news.set()
                if self._meeting is None:
                    self._meeting = self._thread("braid-meeting", self._meet)
                return transfer
        transfer.begin()
        return transfer

    def withdraw(self, transfer: Transfer) -> None:
        """A transfer that has not begun never will."""
        with self._lock, contextlib.suppress(ValueError):
            self._peers[transfer.peer].orders.remove(transfer)

    def wait_for_any(self) -> None:
        """This rank is about to receive from any rank: each that wants to send may begin."""
        if not self._waits_for_any:
            self._waits_for_any = True
            self._store.set(_of_any(self._rank), "here")

    def close(self) -> None:
        """Ends the threads, and transfers that have not begun."""
        with self._lock:
            self._closing = True
            self._news.set()
            threads = [(thread, _BEGIN_SECONDS) for thread in self._beginning]
            if self._meeting is not None:
                threads.insert(0, (self._meeting, _JOIN_SECONDS))
        for thread, seconds in threads:
            if thread is not threading.current_thread():
                thread.join(seconds)

    def _thread(self, name: str, run: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=run, args=arguments, name=name, daemon=True)
        thread.start()
        return thread

    # The thread that meets: it lives while transfers wait for ranks that have not come.

    def _meet(self) -> None:
        try:
            said: set[int] = set()
            while (awaited := self._awaited(said)) is not None:
                self._look()
                for rank in awaited:
                    if rank not in said:
                        self._store.set(_of_pair(self._rank, rank), "here")
                        said.add(rank)
                    if self._has_come(rank):
                        said.discard(rank)  # What was said stays.
                        self._begin(rank)
                self._pause()
        except Exception as error:
            self._fail_all(self._explained(error))

    def _awaited(self, said: set[int]) -> list[int] | None:
        """The ranks that transfers wait for. None, and the thread's end, if there are none."""
        with self._lock:
            self._news.clear()
            awaited = [rank for rank, peer in self._peers.items() if peer.is_awaited]
            is_over = not awaited and not said
            if is_over:
                self._meeting = None
        # No transfer waits for these any more. They would look for this rank in vain.
        for rank in said.difference(awaited):
            self._store.delete_key(_of_pair(self._rank, rank))
            said.discard(rank)
        return None if is_over else awaited

    def _has_come(self, rank: int) -> bool:
        keys = (_of_pair(rank, self._rank), _of_any(rank))
        return any(self._store.check([key]) for key in keys)

    def _look(self) -> None:
        if self._closing:
            raise _destroyed()
        self._watch.check()

    def _pause(self) -> None:
        with self._lock:
            orders = [peer.ordered_at for peer in self._peers.values() if peer.is_awaited]
        waited = time.monotonic() - max(orders) if orders else 0.0
        self._news.wait(min(max(waited * _PAUSE_SHARE, _PAUSE_SECONDS_MIN), _PAUSE_SECONDS_MAX))

    def _explained(self, error: Exception) -> Exception:
        if not isinstance(error, DistError) or self._closing:
            return error
        try:
            self._watch.explain(error)  # The store ends with the rank that has it.
        except Exception as better:
            return better
        return error

    def _fail_all(self, error: Exception) -> None:
        with self._lock:
            self._meeting = None
            awaited = [peer for peer in self._peers.values() if peer.is_awaited]
            transfers = [transfer for peer in awaited for transfer in peer.orders]
            for peer in awaited:
                peer.orders.clear()
        for transfer in transfers:
            transfer.fail(error)

    # One thread for each rank that has come, until what was ordered has begun.

    def _begin(self, rank: int) -> None:
        with self._lock:
            peer = self._peers[rank]
            peer.is_connecting = True
            self._beginning = [thread for thread in self._beginning if thread.is_alive()]
            self._beginning.append(self._thread("braid-contact", self._begin_orders, peer))

    def _begin_orders(self, peer: _Peer) -> None:
        """In their order, for two transfers may differ in nothing else."""
        is_known = False
        while True:
            with self._lock:
                if not peer.orders:
                    peer.is_connecting = False
                    peer.is_known = is_known
                    return
                transfer = peer.orders.popleft()
            try:
                self._watch.see_through(transfer.begin)
                is_known = True
            except Exception as error:
                is_known = False
                transfer.fail(error)


class _Peer:
    """Another rank, and the transfers with it that have not begun. Under the lock of FirstContacts."""

    def __init__(self) -> None:
        self.orders: deque[Transfer] = deque()
        self.ordered_at = 0.0
        self.is_connecting = False
        self.is_known = False

    @property
    def is_awaited(self) -> bool:
        return bool(self.orders) and not self.is_connecting


def _of_pair(rank: int, to: int) -> str:
    return f"{rank}/to/{to}"


def _of_any(rank: int) -> str:
    return f"{rank}/to/any"


def _destroyed() -> DistBackendError:
    return DistBackendError("the process group was destroyed")
