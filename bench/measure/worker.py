# SPDX-License-Identifier: Apache-2.0
"""A worker process: answers what group.py asks it."""

import json
import os
import socket
import sys
from collections.abc import Callable

SOCKET_VARIABLE = "BRAID_MEASURE_CONTROL"


def serve(hello: dict, answer: Callable[[dict], dict]) -> None:
    """Until nobody asks any more. `hello` has the rank, and versions of what is measured."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.connect(os.environ[SOCKET_VARIABLE])

        def say(message: dict) -> None:
            control.sendall(json.dumps(message).encode() + b"\n")

        say(hello)
        for line in control.makefile("r", encoding="utf-8"):
            say(answer(json.loads(line)))


def leave() -> None:
    """Ends the process at once: threads of gloo may abort an interpreter that ends in the usual way."""
    sys.stderr.flush()
    os._exit(0)
