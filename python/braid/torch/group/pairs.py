# SPDX-License-Identifier: Apache-2.0
"""Send and receive on a torch whose gloo cannot start lazily (before 2.8).

Each pair of ranks that talks gets a gloo group of two.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import DistError, PrefixStore, Store, TCPStore, Work

from braid.torch.group.stores import underlying

_CONNECT_SECONDS = 1.0


class Pairs:
    """The groups of two of one rank. Any thread may call.

    The first transfer with a rank makes their group and waits for that rank to do the same.
    `name` sets the groups' keys in the store apart from all others', on all ranks. `check` raises
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
        self._rank = rank
        self._make_group = make_group
        self._timeout = timeout
        self._check = check
        self._lock = threading.Lock()
        self._groups: dict[int, Any] = {}

    def send(self, tensors: list[torch.Tensor], peer: int, tag: int) -> Work:
        return self._group(peer).send(tensors, self._in_group(peer), tag)

    def recv(self, tensors: list[torch.Tensor], peer: int, tag: int) -> Work:
        return self._group(peer).recv(tensors, self._in_group(peer), tag)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int) -> Work:
        raise NotImplementedError(
            "receiving from any source needs torch 2.8 or newer when the backend is braid; "
            "give the source rank, or use a gloo group"
        )

    def set_timeout(self, timeout: timedelta) -> None:
        with self._lock:
            self._timeout = timeout
            groups = list(self._groups.values())
        for group in groups:
            group._set_default_timeout(timeout)

    def close(self) -> None:
        with self._lock:
            self._groups.clear()

    def _in_group(self, peer: int) -> int:
        """The other rank of a group of two."""
        return int(peer > self._rank)

    def _group(self, peer: int) -> Any:
        with self._lock:
            group = self._groups.get(peer)
        if group is None:
            group = self._made(peer)
            with self._lock:
                self._groups[peer] = group
        return group

    def _made(self, peer: int) -> Any:
        low, high = sorted((self._rank, peer))
        store = PrefixStore(f"braid/pairs/{self._name}/{low}-{high}", self._own_connection())
        return self._make_group(store, int(self._rank > peer), 2, self._timeout)

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
                self._check()
                if time.monotonic() > end:
                    raise
