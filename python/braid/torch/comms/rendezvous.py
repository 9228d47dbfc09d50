# SPDX-License-Identifier: Apache-2.0
"""The store by which a communicator of torchcomms finds its ranks."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from datetime import timedelta
from typing import Any

from torch.distributed import DistNetworkError, Store, TCPStore

from braid.torch.group.stores import key_comes

# Variables of rank and size, in torchcomms' order: its own, Open MPI's, MPICH's, torchrun's.
_PLACES = (
    ("TORCHCOMM_RANK", "TORCHCOMM_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("RANK", "WORLD_SIZE"),
)
_PROBE_SECONDS = 1.0
_PAUSE_SECONDS = 0.01
_YES = ("1", "true", "yes", "on", "y", "t")


def own_place() -> tuple[int, int]:
    """This process's rank, and the number of ranks."""
    for rank, size in _PLACES:
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    pairs = ", ".join(" and ".join(pair) for pair in _PLACES)
    raise RuntimeError(f"braid: no rank is known; set one of {pairs}")


def store_of(name: str, rank: int, size: int, options: Any) -> Store:
    """A store of this communicator's own, on rank 0, at a port that its ranks say each other.

    A script may drop the store that it handed in as soon as it has its communicator, unless it says
    otherwise, and the next communicator without one is made at the same MASTER_PORT.
    """
    given, timeout = options.store, options.timeout
    if given is not None and options.hints.get("persistent_store", "").lower() in _YES:
        return given
    host = _from_environment("MASTER_ADDR", name)
    meeting = _Meeting(name, rank, size, host, timeout)
    if given is not None:
        return meeting.at(given)
    return meeting.at_port(int(_from_environment("MASTER_PORT", name)))


class _Meeting:
    """Rank 0 makes the store; the others ask where it is, until `timeout` is over."""

    def __init__(self, name: str, rank: int, size: int, host: str, timeout: timedelta) -> None:
        self._name = name
        self._rank = rank
        self._size = size
        self._host = host
        self._timeout = timeout
        self._end = time.monotonic() + timeout.total_seconds()
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._port_key = f"torchcomms/braid/{attempt}/{name}/port"
        self._heard_key = f"torchcomms/braid/{attempt}/{name}/heard"

    def at(self, door: Store) -> Store:
        return self._offer(door) if self._rank == 0 else self._find(door)

    def at_port(self, port: int) -> Store:
        """Where another store listens at that port, the script's or the launcher's, they meet there."""
        if self._rank == 0:
            with contextlib.suppress(DistNetworkError):
                return self._offer(self._store_at(port, is_master=True))
        while time.monotonic() < self._end:
            try:
                if _listens(self._host, port):
                    return self.at(self._store_at(port, is_master=False))
            except DistNetworkError:
                pass  # Who was there for the communicator before this one is gone.
            time.sleep(_PAUSE_SECONDS)
        raise self._late(f"no store listens at MASTER_PORT={port}")

    def _store_at(self, port: int, *, is_master: bool) -> TCPStore:
        return TCPStore(self._host, port, None, is_master, self._timeout, wait_for_workers=False)

    def _offer(self, door: Store) -> Store:
        own = self._store_at(0, is_master=True)
        door.set(self._port_key, str(own.port))
        while (heard := door.add(self._heard_key, 0)) < self._size - 1:
            if time.monotonic() > self._end:
                raise self._late(f"{self._size - 1 - heard} of {self._size} ranks did not come")
            time.sleep(_PAUSE_SECONDS)
        # The store may be the script's, and this name may come again.
        door.delete_key(self._port_key)
        door.delete_key(self._heard_key)
        return own

    def _find(self, door: Store) -> Store:
        if not key_comes(door, self._port_key, self._end):
            raise self._late("rank 0 said nothing of its store")
        port = int(door.get(self._port_key))
        door.add(self._heard_key, 1)
        return self._store_at(port, is_master=False)

    def _late(self, who: str) -> RuntimeError:
        return RuntimeError(
            f"braid: communicator {self._name}, rank {self._rank}: {who} within "
            f"{self._timeout.total_seconds():g} s (MASTER_ADDR={self._host})"
        )


def _listens(host: str, port: int) -> bool:
    """Asked before a store connects: while that waits, no handler of a signal runs."""
    try:
        socket.create_connection((host, port), _PROBE_SECONDS).close()
    except OSError:
        return False
    return True


def _from_environment(variable: str, name: str) -> str:
    if value := os.environ.get(variable):
        return value
    raise RuntimeError(
        f"braid: communicator {name} does not know where its ranks meet: {variable} is not set"
    )
