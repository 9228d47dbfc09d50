# SPDX-License-Identifier: Apache-2.0
"""Scripts end in many ways; each of these must end the process cleanly and with its own code."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from report import report
from torch.nn.parallel import DistributedDataParallel

import braid.torch


def main() -> None:
    how = sys.argv[1]
    braid.torch.register()
    dist.init_process_group("braid")
    rank = dist.get_rank()
    model = DistributedDataParallel(torch.nn.Linear(10, 10))
    model(torch.ones(2, 10)).sum().backward()
    tensor = torch.ones(4)
    dist.all_reduce(tensor)
    report(total=tensor[0].item())
    if how == "destroyed_twice_used":
        dist.destroy_process_group()
        dist.init_process_group("braid")
        dist.all_reduce(tensor)
        assert tensor[0].item() == dist.get_world_size() ** 2
        dist.destroy_process_group()
    elif how == "with_gloo_used":
        dist.all_reduce(torch.ones(4, dtype=torch.int32), op=dist.ReduceOp.BOR)
    elif how == "in_flight":
        if rank == 0:
            # The others never come to this one: it is abandoned.
            globals()["kept"] = dist.all_reduce(torch.ones(4), async_op=True)
    elif how == "forked":
        child = os.fork()
        if child == 0:
            sys.exit(0)  # Runs the exit handlers of a process that has no job.
        assert os.waitpid(child, 0)[1] == 0
        dist.all_reduce(tensor)
    elif how == "exit_code":
        sys.exit(3)
    else:
        assert how == "simply", how


if __name__ == "__main__":
    main()
