# SPDX-License-Identifier: Apache-2.0
"""Listens on a network interface: `wire_tap.py INTERFACE NAME=HEX...`, in the namespace of a node.

Prints READY. When stdin ends it prints, as JSON, how many bytes of TCP it has heard, and for each NAME in how many
packets the bytes HEX were.
"""

import json
import select
import socket
import sys

ETH_P_IP, ETHERNET_BYTES, PROTOCOL_AT = 0x0800, 14, 9
ALL_PACKETS = 3
SO_RCVBUFFORCE = 33  # Python has no name for it
BUFFER_BYTES = 128 << 20
PACKET_BYTES_MAX = 1 << 17


def payload(frame: bytes) -> bytes:
    """Of TCP over IPv4; else nothing."""
    packet = frame[ETHERNET_BYTES:]
    if int.from_bytes(frame[12:14]) != ETH_P_IP or packet[PROTOCOL_AT] != socket.IPPROTO_TCP:
        return b""
    segment = packet[(packet[0] & 15) * 4 : int.from_bytes(packet[2:4]) or None]
    return segment[(segment[12] >> 4) * 4 :]


def listen(interface: str, wanted: dict[str, bytes]) -> dict[str, int]:
    heard = dict.fromkeys(["bytes", *wanted], 0)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PACKETS)) as tap:
        tap.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        tap.bind((interface, ALL_PACKETS))
        print("READY", flush=True)
        is_over = False
        while not is_over:
            is_over = sys.stdin in select.select([sys.stdin, tap], [], [])[0]
            while select.select([tap], [], [], 0)[0]:
                said = payload(tap.recv(PACKET_BYTES_MAX))
                heard["bytes"] += len(said)
                for name, text in wanted.items():
                    heard[name] += text in said
    return heard


if __name__ == "__main__":
    texts = dict(argument.split("=") for argument in sys.argv[2:])
    print(json.dumps(listen(sys.argv[1], {name: bytes.fromhex(text) for name, text in texts.items()})))
