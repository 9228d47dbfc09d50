# SPDX-License-Identifier: Apache-2.0
"""One rank of a DDP job that trains until rank 0 has logged why its steps take what they take."""

from __future__ import annotations

import logging
import time

import torch
import torch.distributed as dist
from report import Heard, report
from torch.nn.parallel import DistributedDataParallel

import braid.torch  # noqa: F401 (the backend)

DEADLINE_S = 120


def main() -> None:
    heard = Heard(logging.NOTSET)
    dist.init_process_group("braid")
    ddp = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)))
    ddp.register_comm_hook(braid.torch.DDPHookState(ddp), braid.torch.ddp_hook)
    end = time.monotonic() + DEADLINE_S
    steps = 0
    is_over = torch.zeros(1)
    while not is_over.item():
        time.sleep(0.02)
        ddp(torch.randn(4, 6)).sum().backward()
        steps += 1
        is_over[0] = dist.get_rank() == 0 and (bool(heard.texts) or time.monotonic() > end)
        dist.broadcast(is_over, 0)
    report(steps=steps, heard=heard.texts)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
