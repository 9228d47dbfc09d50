# SPDX-License-Identifier: Apache-2.0
"""Calls that cannot work, of one rank. What it is told."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from report import report
from torch.nn.parallel import DistributedDataParallel

import braid
import braid.torch

FLOAT8 = torch.ones(4).to(torch.float8_e4m3fn)
SPARSE = torch.eye(3).to_sparse()
STEPS = 3  # From the third one on gradients travel by their codec.


def told(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def register(**spec: Any) -> None:
    job = braid.Job("poor", 0, 1)
    try:
        job.register([braid.TensorSpec(**spec)])
    finally:
        job.close()


def train_with_codec(codec: str) -> None:
    os.environ["BRAID_CODEC"] = codec
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    model.register_comm_hook(braid.torch.DDPHookState(model), braid.torch.ddp_hook)
    for _ in range(STEPS):
        model(torch.ones(1, 4)).sum().backward()


def shard_over_gloo() -> None:
    parameters = [torch.nn.Parameter(torch.ones(2))]
    group = dist.new_group(backend="gloo")
    braid.torch.ShardedOptimizer(parameters, torch.optim.SGD, lr=0.1, process_group=group)


CALLS: dict[str, Callable[[], Any]] = {
    "all_reduce float8": lambda: dist.all_reduce(FLOAT8),
    "reduce float8": lambda: dist.reduce(FLOAT8, 0),
    "all_reduce int16": lambda: dist.all_reduce(torch.ones(4, dtype=torch.int16)),
    "all_gather sparse": lambda: dist.all_gather([SPARSE.clone()], SPARSE),
    "all_gather_single sparse": lambda: dist.all_gather_into_tensor(torch.ones(3, 3), SPARSE),
    "all_to_all sparse": lambda: dist.all_to_all([SPARSE.clone()], [SPARSE]),
    "broadcast sparse": lambda: dist.broadcast(SPARSE, 0),
    "gather sparse": lambda: dist.gather(SPARSE, [SPARSE.clone()], 0),
    "reduce sparse": lambda: dist.reduce(SPARSE, 0),
    "reduce_scatter sparse": lambda: dist.reduce_scatter(SPARSE.clone(), [SPARSE]),
    "scatter sparse": lambda: dist.scatter(SPARSE, [SPARSE.clone()], 0),
    "count": lambda: register(name="some", count=-1),
    "large count": lambda: register(name="some", count=1 << 64),
    "name": lambda: register(name="some\0thing", count=1),
    "codec": lambda: train_with_codec("int9"),
    "group": shard_over_gloo,
}


def main() -> None:
    braid.torch.register()
    dist.init_process_group("braid")
    report(told={name: told(call) for name, call in CALLS.items()})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
