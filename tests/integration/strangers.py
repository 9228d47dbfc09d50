# SPDX-License-Identifier: Apache-2.0
"""A stranger with bad manners, for one port: `strangers.py HOW ADDRESS PORT` or `HOW PATH`.

Run on another node (or, for the Unix socket, on the same). It never expects an answer: being
dropped is what it is there for. Prints how many connections it made.
"""

import contextlib
import os
import random
import socket
import struct
import sys
import time

TIMEOUT_S = 10
# Flows' ports answer nobody once their flow is open: a stranger need not wait long to see that.
ANSWER_TIMEOUT_S = 1
ZEROS_BYTES = 200 << 20
SILENT_CONNECTIONS = 200


def dial(where: list[str]) -> socket.socket:
    if len(where) == 1:
        door = socket.socket(socket.AF_UNIX)
        door.settimeout(TIMEOUT_S)
        door.connect(where[0])
        return door
    return socket.create_connection((where[0], int(where[1])), TIMEOUT_S)


def speak(where: list[str], pieces) -> None:
    """Sends until it is told to go away, or has said it all and waits for the end."""
    with contextlib.suppress(OSError), dial(where) as door:
        for piece in pieces:
            door.sendall(piece)
        door.shutdown(socket.SHUT_WR)
        while door.recv(65536):
            pass


def garbage(where: list[str]) -> int:
    chance = random.Random(4711)
    for size in (1, 3, 4, 8, 16, 64, 1000, 70_000):
        speak(where, [chance.randbytes(size)])
    # Lengths that promise too much, in both byte orders, and a page of HTTP.
    for head in (b"\xff" * 8, struct.pack("<I", 1 << 20), struct.pack(">I", 64), b"\0" * 16):
        speak(where, [head, chance.randbytes(5000)])
    speak(where, [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"])
    return 13


def halves(where: list[str]) -> int:
    """Begins a message that could be one, and goes away in the middle of it."""
    for size in (1, 2, 4, 5, 12, 30):
        with contextlib.suppress(OSError), dial(where) as door:
            door.sendall((struct.pack("<I", 100) + os.urandom(40))[:size])
    return 6


def silence(where: list[str]) -> int:
    doors = []
    for _ in range(SILENT_CONNECTIONS):
        with contextlib.suppress(OSError):
            doors.append(dial(where))
    time.sleep(2)  # the silence, longer than debug.connect_timeout_ms
    for door in doors:
        door.close()
    return len(doors)


def zeros(where: list[str]) -> int:
    block = bytes(1 << 20)
    end = time.monotonic() + TIMEOUT_S
    with contextlib.suppress(OSError), dial(where) as door:
        for _ in range(ZEROS_BYTES // len(block)):
            if time.monotonic() > end:
                break
            door.sendall(block)
    return 1


def is_answered(where: list[str]) -> bool:
    if len(where) == 1:
        return True
    try:
        socket.create_connection((where[0], int(where[1])), ANSWER_TIMEOUT_S).close()
    except TimeoutError:
        return False
    return True


if __name__ == "__main__":
    if not is_answered(sys.argv[2:]):
        print(1)
        sys.exit(0)
    print({f.__name__: f for f in (garbage, halves, silence, zeros)}[sys.argv[1]](sys.argv[2:]))
