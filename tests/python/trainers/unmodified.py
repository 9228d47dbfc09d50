# SPDX-License-Identifier: Apache-2.0
"""A script that has never heard of braid; it says what it got, one way after the other: `unmodified.py WAY…`."""

import os
import sys

import torch
import torch.distributed
from report import report
from torch.distributed import distributed_c10d, init_process_group
from torch.distributed.device_mesh import init_device_mesh


def main() -> None:
    ways = {
        "gloo": lambda: init_process_group("gloo"),
        "nccl": lambda: torch.distributed.init_process_group(backend="nccl"),
        "both": lambda: distributed_c10d.init_process_group("cpu:gloo,cuda:nccl"),
        "none": lambda: init_process_group(),
        "braid": lambda: init_process_group("braid"),
        "mesh": lambda: init_device_mesh("cpu", (int(os.environ["WORLD_SIZE"]),)),
    }
    got = {}
    for way in sys.argv[1:]:
        ways[way]()
        tensor = torch.ones(1000)
        torch.distributed.all_reduce(tensor)
        side = torch.distributed.new_group(backend="gloo")
        torch.distributed.all_reduce(tensor, group=side)
        got[way] = [torch.distributed.get_backend(), torch.distributed.get_backend(side), tensor[0].item()]
        torch.distributed.destroy_process_group()
    braid_loaded = "braid.torch.group.process_group" in sys.modules
    report(got=got, name=__name__, path=sys.path[0], braid_loaded=braid_loaded)


if __name__ == "__main__":
    main()
