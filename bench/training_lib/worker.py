# SPDX-License-Identifier: Apache-2.0
"""A rank of one system: trains what it is told over a Unix socket (compare_lib/control.py).

Tasks are runner.py's, each of one training; the answer is what training.py returns. As a user's script it says
"gloo", and whether braid takes its place is said by the environment.
"""

import argparse
import datetime
import json
import os
import socket
import sys

import torch
import torch.distributed as dist
from compare_lib.worker import SOCKET_VARIABLE

from .data import load
from .training import train

_TIMEOUT = datetime.timedelta(seconds=120)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("backend")
    parser.add_argument("--hook", default="")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=_TIMEOUT)
    if dist.get_backend() != arguments.backend:
        sys.exit(f"the process group is {dist.get_backend()}'s, and not {arguments.backend}'s")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.connect(os.environ[SOCKET_VARIABLE])
        _serve(control, arguments.hook)
    dist.destroy_process_group()


def _serve(control: socket.socket, hook: str) -> None:
    def say(message: dict) -> None:
        control.sendall(json.dumps(message).encode() + b"\n")

    say({"rank": dist.get_rank(), "versions": {"torch": torch.__version__}})
    loaded: dict[str, tuple] = {}
    for line in control.makefile("r", encoding="utf-8"):
        task = json.loads(line)
        name = task["dataset"]
        if name not in loaded:
            loaded[name] = load(name)
        say(train(task, *loaded[name], hook))


if __name__ == "__main__":
    main()
    sys.stderr.flush()
    os._exit(0)  # gloo's threads may abort an interpreter that ends in the usual way
