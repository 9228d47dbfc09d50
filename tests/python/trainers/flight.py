# SPDX-License-Identifier: Apache-2.0
"""One rank whose flight record is wanted: `flight.py all` does everything once, `flight.py missing` leaves out an
all-reduce on rank 1."""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from report import report
from torch.nn.parallel import DistributedDataParallel

import braid.torch


def train() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    ddp = DistributedDataParallel(model)
    ddp.register_comm_hook(braid.torch.DDPHookState(ddp), braid.torch.ddp_hook)
    for _ in range(5):
        ddp(torch.randn(4, 6)).sum().backward()


def everything() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    one = torch.ones(3, 2)
    dist.all_reduce(one)
    dist.all_reduce(one, op=dist.ReduceOp.AVG, async_op=True).wait()
    dist.broadcast(one, 1)
    dist.reduce(one, 1)
    dist.barrier()
    many = [torch.empty(3, 2) for _ in range(size)]
    dist.all_gather(many, one)
    dist.all_gather_into_tensor(torch.empty(3 * size, 2), one)
    dist.reduce_scatter_tensor(torch.empty(3, 2), torch.ones(3 * size, 2))
    dist.gather(one, many if rank == 0 else None)
    dist.scatter(one, many if rank == 0 else None)
    dist.all_to_all_single(torch.empty(4), torch.ones(4))
    # Rank r sends r + s + 1 elements to rank s.
    sizes = [rank + other + 1 for other in range(size)]
    dist.all_to_all([torch.empty(n) for n in sizes], [torch.ones(n) for n in sizes])
    pair = dist.new_group([0, 1])
    if rank < 2:
        dist.all_reduce(torch.ones(5), group=pair)
    train()
    braid.torch.dump_flight_record()


def with_a_rank_missing() -> None:
    """The others wait for rank 1 until their time is up; then it writes its record, too."""
    dist.all_reduce(torch.ones(3))
    if dist.get_rank() != 1:
        dist.all_reduce(torch.ones(4))
        return
    others = os.environ["TORCH_FR_DUMP_TEMP_FILE"] + "0"
    end = time.monotonic() + 120
    while not os.path.exists(others) and time.monotonic() < end:
        time.sleep(0.05)
    braid.torch.dump_flight_record()


braid.torch.register()
dist.init_process_group("braid", timeout=timedelta(seconds=5 if sys.argv[1] == "missing" else 60))
if sys.argv[1] == "all":
    everything()
    report(done=True)
else:
    try:
        with_a_rank_missing()
        error = ""
    except dist.DistBackendError as cause:
        error = str(cause)
    report(error=error)
dist.destroy_process_group()
