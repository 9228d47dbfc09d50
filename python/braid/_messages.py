# SPDX-License-Identifier: Apache-2.0
"""Messages between two ranks of a job."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_uint32, c_uint64
from typing import Any

from braid import _abi
from braid._arguments import milliseconds
from braid._registering import Memory

ANY_RANK = _abi.ANY_RANK
_MESSAGE_BYTES = ctypes.sizeof(_abi.Message)


class MessagesMixin:
    """The part of Job that sends bytes to one other rank, and receives them.

    A message is known by its sender, its receiver and a tag; what has the same of all three is
    received in the order in which it was sent. test(), wait(), result(), take_briefly() and
    release() are for its tickets, too.
    """

    _library: Any
    _open: Any
    _check: Any
    _insist: Any

    def send(
        self, peer: int, data: Any, *, tag: int = 0, nbytes: int | None = None,
        timeout: float | None = None,
    ) -> int:  # fmt: skip
        """Begins to send `data` to rank `peer` and returns the ticket; it ends when the receiver has
        all bytes. `data` is Memory, an object with a contiguous buffer, or an address with `nbytes`.
        A buffer outside the arenas is copied before this returns."""
        if isinstance(data, Memory):
            address, size = data.address, data.nbytes
        elif isinstance(data, int):
            address, size = data, nbytes or 0
        else:
            view = memoryview(data).cast("B")
            # The copy of a read-only buffer: ctypes takes the address of others alone.
            held = (ctypes.c_char * view.nbytes).from_buffer_copy(view)
            address, size = ctypes.addressof(held), view.nbytes
        return self._give(
            "braid_send", peer, tag, size if nbytes is None else nbytes, address,
            milliseconds(timeout),
        )  # fmt: skip

    def receive(
        self, peer: int, nbytes: int, *, tag: int = 0, timeout: float | None = None
    ) -> int:
        """Begins to receive so many bytes from rank `peer`, or from ANY_RANK, and returns the ticket."""
        return self._give("braid_receive", peer, tag, nbytes, None, milliseconds(timeout))

    def source(self, ticket: int) -> int:
        """The rank whose message a receive has got."""
        rank = c_uint32()
        self._check(self._library.braid_source(self._open(), ticket, byref(rank)))
        return rank.value

    def _give(
        self, function: str, peer: int, tag: int, nbytes: int, address: int | None, timeout_ms: int
    ) -> int:
        message = _abi.Message(_MESSAGE_BYTES, peer, timeout_ms, tag, nbytes, address)
        ticket = c_uint64()
        call: Callable[..., int] = getattr(self._library, function)
        self._insist(lambda: call(self._open(), byref(message), byref(ticket)), timeout_ms)
        return ticket.value
