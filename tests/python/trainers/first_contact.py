# SPDX-License-Identifier: Apache-2.0
"""Rank VICTIM is killed before the others use gloo with it: `first_contact.py VICTIM HOW`.

It has not spoken to anybody then, unless HOW begins with "again".
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from report import report

import braid.torch


BYTES = torch.ones(6, dtype=torch.int8)  # braid does not reduce them.


def all_reduce(victim: int) -> None:
    dist.all_reduce(BYTES.clone())


def all_reduce_later(victim: int) -> None:
    dist.all_reduce(BYTES.clone(), async_op=True).get_future().wait()


def reduce_scatter(victim: int) -> None:
    dist.reduce_scatter_tensor(BYTES[:2].clone(), BYTES)


HOWS: dict[str, Callable[[int], Any]] = {
    "recv": lambda victim: dist.recv(torch.ones(4), victim),
    "irecv": lambda victim: dist.irecv(torch.ones(4), victim).wait(),
    "send": lambda victim: dist.send(torch.ones(4), victim),
    "recv from any": lambda victim: dist.recv(torch.ones(4)),
    "all_reduce": all_reduce,
    "all_reduce later": all_reduce_later,
    "reduce": lambda victim: dist.reduce(BYTES.clone(), dst=1),
    "reduce_scatter": reduce_scatter,
    "monitored_barrier": lambda victim: dist.monitored_barrier(),
}


def main() -> None:
    victim, how = int(sys.argv[1]), sys.argv[2]
    act = HOWS[how.removeprefix("again ")]
    rank = int(os.environ["RANK"])
    braid.torch.register()
    dist.init_process_group("braid", timeout=timedelta(minutes=30))
    if how.startswith("again "):
        act(victim)
    dist.barrier()
    if rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        act(victim)
    except RuntimeError as error:
        report(text=str(error))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
