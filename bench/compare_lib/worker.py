# SPDX-License-Identifier: Apache-2.0
"""A rank of a peer: does what control.py says. Needs nothing but Python, so that every peer's
interpreter can run it."""

import json
import os
import socket
import time
from collections.abc import Callable

from .cases import Case

SOCKET_VARIABLE = "BRAID_COMPARE_CONTROL"
PYTHON_VARIABLE = "BRAID_COMPARE_PYTHON"  # the folder that braid's Python package must come from


class Peer:
    """What a system must be able to do; one process, one rank."""

    rank = 0
    size = 1
    versions: dict[str, str] = {}

    def prepare(self, case: Case) -> Callable[[], object]:
        """Makes the buffers, does it once to see that the result is right, and returns what does it again."""
        raise NotImplementedError

    def barrier(self) -> None:
        raise NotImplementedError


def expected_sum(size: int) -> float:
    """Where every rank puts in its number, counted from 1."""
    return size * (size + 1) / 2


def serve(peer: Peer) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.connect(os.environ[SOCKET_VARIABLE])
        lines = control.makefile("r", encoding="utf-8")

        def say(message: dict) -> None:
            control.sendall(json.dumps(message).encode() + b"\n")

        say({"rank": peer.rank, "versions": peer.versions})
        for line in lines:
            task = json.loads(line)
            run = peer.prepare(Case(**task["case"]))
            _loop(peer, run, task["warmup"])
            say({"warm": True})
            lines.readline()
            say({"seconds": _loop(peer, run, task["iterations"])})


def _loop(peer: Peer, run: Callable[[], object], iterations: int) -> list[float]:
    seconds = []
    for _ in range(iterations):
        peer.barrier()
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return seconds
