# SPDX-License-Identifier: Apache-2.0
"""Worker processes, one for each rank, told what to do over a Unix socket in the run directory.

Lines of JSON. A worker says {"rank": r, "versions": {...}} when its system works. Then all are asked the same, and each
answers. A worker whose connection is closed ends. The network of the nodes is not touched by this, and a worker that
waits uses no processor.
"""

import contextlib
import itertools
import json
import os
import selectors
import socket
from collections.abc import Callable

from .cluster import Cluster
from .errors import Deadline, SystemFailed
from .programs import END_S, Program, last_words, stop_all
from .worker import SOCKET_VARIABLE

_TURN_S = 0.2  # how often it is looked whether a process has died
_LINE_BYTES_MAX = 64 << 20
_numbers = itertools.count(1)


class _Connection:
    def __init__(self, peer: socket.socket):
        self.socket = peer
        self._received = b""

    def receive(self) -> dict | None:
        """The next message if it is complete."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise SystemFailed("a worker closed its connection")
        self._received += data
        if len(self._received) > _LINE_BYTES_MAX:
            raise SystemFailed("a worker says too much")
        line, end, rest = self._received.partition(b"\n")
        if not end:
            return None
        self._received = rest
        return json.loads(line)


class Group:
    """The workers of one system. Main thread only."""

    @classmethod
    def of(
        cls, cluster: Cluster, launch: Callable[[dict[str, str]], list[Program]], count: int, timeout_s: float
    ) -> "Group":
        """`count` workers on a cluster, which `launch` starts with these variables; they work when it returns."""
        path = os.path.join(cluster.state.directory, f"workers{next(_numbers)}.sock")
        group = cls(path)
        try:
            said = group.gather(launch({SOCKET_VARIABLE: path}), count, Deadline(timeout_s))
        except BaseException:
            group.close()
            raise
        group.versions = said[0].get("versions", {})
        return group

    def __init__(self, path: str):
        self.versions: dict[str, str] = {}
        self._path = path
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(path)
        self._server.listen(1024)
        self._workers: list[_Connection] = []
        self._programs: list[Program] = []

    def gather(self, programs: list[Program], count: int, deadline: Deadline) -> list[dict]:
        """Waits until `count` workers work; what they said of themselves."""
        self._programs = programs
        while len(self._workers) < count:
            self._watch(deadline, "to start")
            self._server.settimeout(_TURN_S)
            with contextlib.suppress(TimeoutError):
                self._workers.append(_Connection(self._server.accept()[0]))
        return self._collect(deadline, "to start")

    def ask(self, message: dict, deadline: Deadline) -> list[dict]:
        """Sends one message to all, and returns the answer of each."""
        line = json.dumps(message).encode() + b"\n"
        for worker in self._workers:
            worker.socket.settimeout(max(deadline.left(), _TURN_S))
            try:
                worker.socket.sendall(line)
            except OSError as error:
                raise self._failure(f"a worker cannot be reached: {error}") from None
        return self._collect(deadline, "for an answer")

    def _collect(self, deadline: Deadline, what: str) -> list[dict]:
        answers: dict[int, dict] = {}
        with selectors.DefaultSelector() as selector:
            for number, worker in enumerate(self._workers):
                selector.register(worker.socket, selectors.EVENT_READ, number)
            while len(answers) < len(self._workers):
                for key, _ in selector.select(min(_TURN_S, deadline.left())):
                    try:
                        answer = self._workers[key.data].receive()
                    except (OSError, ValueError, SystemFailed) as error:
                        stop_all(self._programs, grace_s=1.0)
                        raise self._failure(str(error)) from None
                    if answer is not None:
                        answers[key.data] = answer
                        selector.unregister(key.fileobj)
                if len(answers) < len(self._workers):
                    self._watch(deadline, what)
        return [answers[number] for number in range(len(self._workers))]

    def _watch(self, deadline: Deadline, what: str) -> None:
        if any(program.has_ended() for program in self._programs):
            stop_all(self._programs, grace_s=1.0)
            raise self._failure("a process has ended")
        if deadline.is_over():
            raise self._failure(f"waited {deadline.seconds:g} s {what}")

    def _failure(self, text: str) -> SystemFailed:
        return SystemFailed(f"{text}\n{last_words(self._programs)}")

    def close(self, grace_s: float = END_S) -> None:
        """Workers that have not ended after `grace_s` are killed."""
        for worker in self._workers:
            worker.socket.close()
        self._workers.clear()
        self._server.close()
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        stop_all(self._programs, grace_s)
        self._programs = []


def slowest(answers: list[dict], name: str) -> list[float]:
    """The greatest of the ranks' seconds, place by place."""
    return [max(times) for times in zip(*(answer[name] for answer in answers), strict=True)]
