# SPDX-License-Identifier: Apache-2.0
"""dist.set_timeout() and extensions, shorter and longer, as rank 0 sees them.

Rank 1 comes late where the time has been made longer, and does not come where it has been made shorter.
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from report import report, told
from torch.distributed import distributed_c10d
from torch.distributed.distributed_c10d import _add_ephemeral_timeout_for_all_pgs, _set_pg_timeout
from torch.nn.parallel import DistributedDataParallel

import braid.torch

LONG = timedelta(seconds=300)
SHORT = timedelta(seconds=2)
LATE_S = 5


def set_timeout(timeout: timedelta, group: Any) -> None:
    getattr(dist, "set_timeout", _set_pg_timeout)(timeout, group)


def add(group: Any) -> float:
    ones = torch.ones(3)
    dist.all_reduce(ones, group=group)
    return ones[0].item()


def shorter(group: Any, rank: int, store: Any) -> Any:
    set_timeout(SHORT, group)
    return told(lambda: add(group)) if rank == 0 else ""


def longer(group: Any, rank: int, store: Any) -> Any:
    set_timeout(SHORT, group)
    if rank == 0:
        set_timeout(LONG, group)
    else:
        time.sleep(LATE_S)
        set_timeout(LONG, group)
    return add(group)


def extended(group: Any, rank: int, store: Any) -> Any:
    """Only the first one is longer."""
    if rank == 0:
        set_timeout(SHORT, group)
        _add_ephemeral_timeout_for_all_pgs(LONG)
    else:
        time.sleep(LATE_S)
    total = add(group)
    return [total, told(lambda: add(group)) if rank == 0 else ""]


def gradients(group: Any, rank: int, store: Any) -> Any:
    model = DistributedDataParallel(torch.nn.Linear(4, 4), process_group=group)
    if rank == 0:
        for _ in range(4):
            model(torch.ones(1, 4)).sum().backward()
        set_timeout(SHORT, group)
        return told(lambda: model(torch.ones(1, 4)).sum().backward())
    for _ in range(4):
        model(torch.ones(1, 4)).sum().backward()
    return ""


def received(group: Any, rank: int, store: Any) -> Any:
    ones = torch.ones(3)
    dist.send(ones, 0, group=group) if rank else dist.recv(ones, 1, group=group)
    set_timeout(SHORT, group)
    return told(lambda: dist.recv(torch.ones(3), 1, group=group)) if rank == 0 else ""


def main() -> None:
    braid.torch.enable()
    dist.init_process_group("gloo", timeout=LONG)
    rank = dist.get_rank()
    store = distributed_c10d._get_default_store()
    results = {}
    for way in (shorter, longer, extended, gradients, received):
        group = dist.new_group(timeout=LONG)
        results[way.__name__] = way(group, rank, store)
        # Rank 1 is there until rank 0 has seen that it does not come.
        store.set(f"{way.__name__}/{rank}", "done")
        store.wait([f"{way.__name__}/{1 - rank}"], LONG)
    report(**results)
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
