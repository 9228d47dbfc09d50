# SPDX-License-Identifier: Apache-2.0
"""Each wait for this node's daemon, which stands still until a signal's handler has run.

One rank alone. Where handlers do not run in a wait, it ends with an error after PATIENCE_S.
"""

from __future__ import annotations

import array
import itertools
import os
import signal
import socket
import struct
from collections.abc import Callable
from typing import Any

from report import report
from signalled import with_signal

import braid

PATIENCE_S = 60
LARGE_BYTES = 40 << 20  # more than the arenas have before it
RING_ENTRIES = 8192


def daemon_process() -> int:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(os.environ["BRAID_SOCKET"])
        peer = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", peer)[0]


DAEMON = daemon_process()


class Preempted(BaseException):
    pass


def run_stopped(wait: Callable[[], Any], error: type[BaseException] | None = None) -> Any:
    """`wait` for the stopped daemon. The handler continues it, and raises `error`."""

    def handle(*_: Any) -> None:
        os.kill(DAEMON, signal.SIGCONT)
        if error is not None:
            raise error

    os.kill(DAEMON, signal.SIGSTOP)
    try:
        return with_signal(handle, wait)
    finally:
        os.kill(DAEMON, signal.SIGCONT)


class Waits:
    def __init__(self) -> None:
        self.job = braid.Job("stopped", 0, 1, timeout=PATIENCE_S)
        self.tensor = self.job.register([braid.TensorSpec("tensor", count=4)])[0]
        self.values = array.array("f", [1, 2, 3, 4])
        self.steps = itertools.count()
        self.done: list[int] = []
        self.full: list[int] = []

    def submit(self) -> int:
        return self.job.submit(self.tensor, next(self.steps), self.values)

    def finish_some(self) -> None:
        """Half a ring of tickets to give back."""
        self.done = [self.submit() for _ in range(RING_ENTRIES // 2)]
        for ticket in self.done:
            self.job.wait(ticket)

    def fill_ring(self) -> None:
        """The stopped daemon's, with those and as many submissions."""
        for ticket in self.done:
            self.job.release(ticket)
        self.full = [self.submit() for _ in range(RING_ENTRIES // 2)]

    def take(self, ticket: int, expected: bytes) -> None:
        for full in self.full:
            self.job.wait(full)
            self.job.release(full)
        self.full = []
        self.job.wait(ticket)
        assert self.job.result(ticket) == expected
        self.job.release(ticket)

    def open(self) -> None:
        run_stopped(lambda: braid.Job("another", 0, 1, timeout=PATIENCE_S)).close()

    def master(self) -> None:
        run_stopped(lambda: braid.master(timeout=PATIENCE_S))

    def register(self) -> None:
        spec = braid.TensorSpec("more", count=4)
        assert run_stopped(lambda: self.job.register([spec])) == [1]

    def register_and_raise(self) -> None:
        """The registration goes on without its caller; others follow."""
        try:
            run_stopped(lambda: self.job.register([braid.TensorSpec("left", count=4)]), Preempted)
        except Preempted:
            pass
        else:
            raise AssertionError("the handler's exception is lost")
        handle = self.job.register([braid.TensorSpec("after", count=4)])[0]
        some = array.array("f", [1, 2, 3, 4])
        self.take(self.job.submit(handle, 0, some), some.tobytes())

    def allocate(self) -> None:
        memory = run_stopped(lambda: self.job.allocate(LARGE_BYTES))
        memory.view()[-1] = 1
        self.job.free(memory)

    def submit_a_copy(self) -> None:
        """A copy that needs another arena."""
        kept = self.job.allocate(LARGE_BYTES)
        tensor = self.job.register([braid.TensorSpec("large", braid.DType.UINT8, 2 * LARGE_BYTES)])[0]
        large = bytearray(2 * LARGE_BYTES)
        large[-1] = 7
        self.take(run_stopped(lambda: self.job.submit(tensor, 0, large)), bytes(large))
        self.job.free(kept)

    def submit_into_a_full_ring(self) -> None:
        def submit() -> int:
            self.fill_ring()
            return self.submit()

        self.finish_some()
        self.take(run_stopped(submit), self.values.tobytes())

    def submit_repeatedly_into_a_full_ring(self) -> None:
        memory = self.job.allocate(16)
        memory.view()[:] = bytes(range(16))
        operation = self.job.repeated(self.tensor, memory)

        def submit() -> int:
            self.fill_ring()
            return operation.submit(next(self.steps))

        self.finish_some()
        self.take(run_stopped(submit), bytes(range(16)))
        self.job.free(memory)

    def release_into_a_full_ring(self) -> None:
        def release() -> None:
            self.fill_ring()
            self.job.release(done)

        done = self.submit()
        self.job.wait(done)
        self.finish_some()
        run_stopped(release)
        self.take(self.submit(), self.values.tobytes())

    def close(self) -> None:
        run_stopped(self.job.close)


def main() -> None:
    waits = Waits()
    parts = ("__init__", "submit", "finish_some", "fill_ring", "take")
    names = [name for name in vars(Waits) if name not in parts]
    done = []
    for name in names:
        if not name.startswith("_"):
            getattr(waits, name)()
            done.append(name)
    report(done=done)


if __name__ == "__main__":
    main()
