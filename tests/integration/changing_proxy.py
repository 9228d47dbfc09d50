# SPDX-License-Identifier: Apache-2.0
"""Sits in TCP connections and changes bytes: `changing_proxy.py PORT EVERY`.

An iptables rule (REDIRECT) leads connections to PORT. Each is carried on to where it was to go. What the side that
has connected says is changed in one bit of each byte number EVERY, 2 EVERY, … Prints READY, and at the end of stdin
how many bytes it has changed.
"""

import contextlib
import socket
import struct
import sys
import threading

SO_ORIGINAL_DST = 80
PIECE_BYTES = 1 << 16
changed = 0  # under lock
lock = threading.Lock()


def carry(source: socket.socket, target: socket.socket, every: int) -> None:
    """every: 0 changes nothing."""
    global changed
    carried = 0
    with contextlib.suppress(OSError):
        while piece := bytearray(source.recv(PIECE_BYTES)):
            for place in range(-carried % every if every else 0, len(piece) if every else 0, every or 1):
                if carried + place == 0:
                    continue
                piece[place] ^= 0x10
                with lock:
                    changed += 1
            carried += len(piece)
            target.sendall(piece)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def serve(listener: socket.socket, every: int) -> None:
    while True:
        with contextlib.suppress(OSError):
            caller, _ = listener.accept()
            port, address = struct.unpack("!2xH4s8x", caller.getsockopt(socket.SOL_IP, SO_ORIGINAL_DST, 16))
            called = socket.create_connection((socket.inet_ntoa(address), port))
            for end in (caller, called):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for way in ((caller, called, every), (called, caller, 0)):
                threading.Thread(target=carry, args=way, daemon=True).start()


if __name__ == "__main__":
    door = socket.create_server(("0.0.0.0", int(sys.argv[1])))
    threading.Thread(target=serve, args=(door, int(sys.argv[2])), daemon=True).start()
    print("READY", flush=True)
    sys.stdin.read()
    print(changed, flush=True)
