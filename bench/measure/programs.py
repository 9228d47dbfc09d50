# SPDX-License-Identifier: Apache-2.0
"""A process of a system: its output line by line with a deadline, its last words, its end."""

import contextlib
import io
import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Iterator

from cluster_lib import processes

from .errors import Deadline

END_S = 5.0
_TAIL_LINES = 20


class Program:
    """Started with the object; killed by stop() with its process group. Main thread only."""

    def __init__(self, argv: list[str], env: dict[str, str]):
        self._said = tempfile.TemporaryFile("w+b")
        self._process = processes.spawn(
            argv,
            env=env,
            death_signal=signal.SIGKILL,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def lines(self, deadline: Deadline) -> Iterator[str]:
        """Its output, until it ends or the deadline is over. One that is begun must be used up."""
        return self.lines_of(self._process.stdout, deadline)

    @staticmethod
    def lines_of(pipe: io.IOBase, deadline: Deadline) -> Iterator[str]:
        partial = b""
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while not deadline.is_over():
                if not selector.select(deadline.left()):
                    continue
                data = os.read(pipe.fileno(), 1 << 16)
                if not data:
                    break
                *whole, partial = (partial + data).split(b"\n")
                for line in whole:
                    yield line.decode(errors="replace")

    def wait(self, deadline: Deadline) -> int | None:
        """Its exit code, None if it still runs."""
        try:
            return self._process.wait(deadline.left())
        except subprocess.TimeoutExpired:
            return None

    def stop(self, grace_s: float = END_S) -> None:
        """Waits for its end, then ends it."""
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            for number in (signal.SIGTERM, signal.SIGKILL):
                processes.signal_group(self._process, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(END_S)
        self._process.stdout.close()

    def last_words(self) -> str:
        """How it ended and the end of its standard error; empty if it said nothing and goes on."""
        size = os.fstat(self._said.fileno()).st_size
        text = os.pread(self._said.fileno(), size, 0).decode(errors="replace")
        lines = text.strip().splitlines()[-_TAIL_LINES:]
        code = self._process.poll()
        if code is not None and code != 0:
            lines.insert(0, processes.describe_exit(code))
        return "\n".join(lines)


def stop_all(programs: list[Program], grace_s: float = END_S) -> None:
    for program in programs:
        program.stop(grace_s)


def last_words(programs: list[Program]) -> str:
    """Each text that a program left, once."""
    said = {program.last_words(): None for program in programs}
    return "\n".join(filter(None, said)) or "(it said nothing)"
