# SPDX-License-Identifier: Apache-2.0
"""A rank of gloo, through torch.distributed."""

import datetime
import os
import sys
from collections.abc import Callable

import torch
import torch.distributed as dist

from .worker import Peer, expected_sum, serve

_TIMEOUT = datetime.timedelta(seconds=120)


class Gloo(Peer):
    def __init__(self):
        torch.set_num_threads(1)
        dist.init_process_group("gloo", timeout=_TIMEOUT)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.versions = {"torch": torch.__version__}

    def prepare(self, count: int) -> Callable[[], None]:
        values = torch.full((count,), float(self.rank + 1))
        dist.all_reduce(values)
        if not bool((values == expected_sum(self.size)).all()):
            sys.exit("gloo: a sum is wrong")
        values.zero_()
        return lambda: dist.all_reduce(values)

    def barrier(self) -> None:
        dist.barrier()


if __name__ == "__main__":
    serve(Gloo())
    dist.destroy_process_group()
    os._exit(0)  # gloo's threads may abort an interpreter that ends in the usual way
