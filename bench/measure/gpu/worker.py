# SPDX-License-Identifier: Apache-2.0
"""A rank: the backend and the device are its arguments.

Tasks are {"do": NAME, ...}; each is answered with {"rank": R} and figures of this rank, or {"error": TEXT}.
"""

import datetime
import os
import sys
from collections.abc import Callable

import torch
import torch.distributed as dist

from .. import worker
from .collectives import check
from .device import Device
from .traffic import Traffic
from .training import Training

# The tool that asks has shorter limits. This one lets a backend give up before a worker is killed by nobody.
_TIMEOUT = datetime.timedelta(seconds=90)


def main(backend: str, device_name: str) -> None:
    torch.set_num_threads(1)
    if backend == "braid":
        import braid.torch

        braid.torch.register()
    device = Device(device_name)
    dist.init_process_group(backend, timeout=_TIMEOUT)
    dist.all_reduce(torch.ones(1, device=device.torch))  # NCCL connects now
    device.wait_for_all()
    traffic, training = Traffic(device), Training(device, backend)
    tasks = {
        "collectives": lambda _: check(device),
        "all-reduce": traffic.all_reduce,
        "communicators": traffic.communicators,
        "copies": traffic.copies,
        "beside": traffic.beside,
        "prepare": training.prepare,
        "steps": training.steps,
    }
    worker.serve(_hello(), lambda task: _attempt(tasks[task["do"]], task))


def _hello() -> dict:
    versions = {"torch": torch.__version__}
    if torch.cuda.is_available():
        versions["CUDA"] = torch.version.cuda
        if dist.is_nccl_available():
            versions["NCCL"] = ".".join(map(str, torch.cuda.nccl.version()))
    return {"rank": int(os.environ["RANK"]), "versions": versions}


def _attempt(run: Callable[[dict], dict], task: dict) -> dict:
    """What a backend refuses is told, and not an end: the tool decides what comes next."""
    try:
        answer = run(task)
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    return {"rank": dist.get_rank(), **answer}


if __name__ == "__main__":
    main(*sys.argv[1:])
    worker.leave()
