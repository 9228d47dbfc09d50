# SPDX-License-Identifier: Apache-2.0
"""A rank, for one task after the other over a Unix socket (compare_lib/control.py), each in a job of its own."""

import datetime
import gc
import json
import os
import socket
import sys

import braid.torch
import torch
import torch.distributed as dist
from compare_lib.worker import SOCKET_VARIABLE

from . import steps, timeline, training

_TIMEOUT = datetime.timedelta(seconds=120)
_TASKS = {"train": training.run, "steps": steps.run, "timeline": timeline.run}


def main() -> None:
    torch.set_num_threads(1)
    braid.torch.enable()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.connect(os.environ[SOCKET_VARIABLE])
        _serve(control)


def _serve(control: socket.socket) -> None:
    def say(message: dict) -> None:
        control.sendall(json.dumps(message).encode() + b"\n")

    say({"rank": int(os.environ["RANK"]), "versions": {"torch": torch.__version__}})
    for line in control.makefile("r", encoding="utf-8"):
        task = json.loads(line)
        os.environ["MASTER_PORT"] = str(task["port"])
        dist.init_process_group("braid", timeout=_TIMEOUT)
        answer = _TASKS[task["kind"]](task)
        rank = dist.get_rank()
        dist.barrier()
        dist.destroy_process_group()
        gc.collect()  # Models and optimizers know each other, and are large.
        say({"rank": rank, **answer})


if __name__ == "__main__":
    main()
    sys.stderr.flush()
    os._exit(0)  # gloo's threads may abort an interpreter that ends in the usual way
