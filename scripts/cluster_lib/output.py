# SPDX-License-Identifier: Apache-2.0
"""Passing on what the ranks print, line by line, each line with its rank in front."""

import os
import select
from typing import BinaryIO

_READ_BYTES = 64 * 1024
_LINE_BYTES_MAX = 64 * 1024  # a longer line is passed on in pieces


class Sink:
    """stdout or stderr of the tool. When its reader has left, what comes is dropped."""

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self.closed = False

    def write(self, data: bytes) -> None:
        while data and not self.closed:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:  # a terminal that another program made non-blocking
                select.select([], [self._descriptor], [])
            except OSError:
                self.closed = True


class Pump:
    """Moves lines from one pipe of a rank to a sink."""

    def __init__(self, pipe: BinaryIO, sink: Sink, prefix: bytes):
        os.set_blocking(pipe.fileno(), False)
        self._pipe = pipe
        self._sink = sink
        self._prefix = prefix
        self._partial = b""

    def move(self) -> bool:
        """Passes on what has arrived; False when the other end is closed, and all was passed on."""
        try:
            data = os.read(self._pipe.fileno(), _READ_BYTES)
        except BlockingIOError:
            return True
        if not data:
            self.finish()
            return False
        *lines, self._partial = (self._partial + data).split(b"\n")
        if len(self._partial) > _LINE_BYTES_MAX:
            lines.append(self._partial)
            self._partial = b""
        self._write(lines)
        return True

    def finish(self) -> None:
        """Passes on the last line if it had no end, and closes the pipe."""
        if self._partial:
            self._write([self._partial])
            self._partial = b""
        self._pipe.close()

    def _write(self, lines: list[bytes]) -> None:
        self._sink.write(b"".join(self._prefix + line + b"\n" for line in lines))
