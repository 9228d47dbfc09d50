# SPDX-License-Identifier: Apache-2.0
"""Where the ranks of a job meet."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from braid._library import library
from braid._question import wait_for_answer
from braid._timeouts import milliseconds

_ADDRESS_BYTES = 256  # Always enough: see braid.h.


class Master(NamedTuple):
    """A daemon: where other nodes' daemons reach it, and its number."""

    address: str
    node: int


def master(*, socket_path: str | None = None, timeout: float | None = None) -> Master:
    """This node's daemon, for `Job(master_address=..., master_node=...)`.

    Rank 0 calls it and passes the answer to all ranks along with the job's name. A loopback address
    means that the daemon serves its own host only. Takes at most `timeout` (10 s).
    """
    address = ctypes.create_string_buffer(_ADDRESS_BYTES)
    node = ctypes.c_uint64()
    path = socket_path.encode() if socket_path else None
    called = library()
    wait_for_answer(
        lambda: called.braid_master(
            path, milliseconds(timeout), address, len(address), ctypes.byref(node)
        )
    )
    return Master(address.value.decode(), node.value)
