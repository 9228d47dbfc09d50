# SPDX-License-Identifier: Apache-2.0
"""Sums over ranks that find each other in one of several ways, and sends from rank to rank."""

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from report import report

import braid.torch


def end_together(file: Path, rank: int) -> None:
    """Rank 0, which has the store, ends last; the others wait until it has heard of them."""
    if rank == 0:
        file.touch()
    while not file.exists():
        time.sleep(0.05)
    sys.exit(1)


def main() -> None:
    way, file = sys.argv[1:]
    braid.torch.register()
    os.environ.pop("GLOO_SOCKET_IFNAME", None)  # gloo finds its way, too
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    more = {"rank": rank, "world_size": size, "timeout": timedelta(seconds=120)}
    if way == "localhost":
        if rank == 0:
            os.environ["MASTER_ADDR"] = "localhost"
        try:
            dist.init_process_group("braid", **more)
        except dist.DistBackendError as error:
            report(error=str(error))
            end_together(Path(file), rank)
    elif way == "file":
        del os.environ["MASTER_ADDR"]
        dist.init_process_group("braid", init_method=f"file://{file}", **more)
    else:
        where = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        os.environ["MASTER_ADDR"] = "127.0.0.1"  # of a run before
        dist.init_process_group("braid", init_method=where, **more)
    total = torch.ones(1000)
    dist.all_reduce(total)
    heard = torch.full((1,), rank, dtype=torch.int8)  # braid does not reduce it.
    dist.all_reduce(heard)
    report(total=total[0].item(), heard=heard.item() - rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
