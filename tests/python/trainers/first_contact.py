# SPDX-License-Identifier: Apache-2.0
"""Rank VICTIM is killed before it has spoken to anybody; the others use gloo with it: `first_contact.py VICTIM HOW`."""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from report import report

import braid.torch


def main() -> None:
    victim, how = int(sys.argv[1]), sys.argv[2]
    rank = int(os.environ["RANK"])
    braid.torch.register()
    dist.init_process_group("braid", timeout=timedelta(minutes=30))
    dist.barrier()
    if rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    tensor = torch.ones(4)
    try:
        if how == "recv":
            dist.recv(tensor, victim)
        elif how == "irecv":
            dist.irecv(tensor, victim).wait()
        else:
            dist.send(tensor, victim)
    except RuntimeError as error:
        report(text=str(error))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
