# SPDX-License-Identifier: Apache-2.0
"""Models that are wrapped in DDP anew, as for cross-validation, and what the arenas of this process hold after each.

same: all of one form. growing: each one has a layer more than the one before. apart: rank 1 keeps two earlier models.
other: many small ones, each with a layer more than the one before.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch.distributed as dist
from report import held, report
from torch.nn.parallel import DistributedDataParallel

import braid.torch

WRAPS, LAYERS, WIDTH = 10, 16, 512  # 16 MB
STEPS = 4


def registered(model: Any) -> list[int]:
    """The handles of a model's tensors."""
    return list(sys.modules["braid.torch.ddp.changed"]._attached[model]._gradients._registration.handles)


def tensors_of_jobs(model: Any) -> int:
    """The registered tensors of the process group."""
    return len(sys.modules["braid.torch.ddp.changed"]._attached[model].group.engine.job._specs)


def layers_of(way: str, wrap: int) -> int:
    return {"growing": LAYERS + wrap, "other": 1 + wrap}.get(way, LAYERS)


def make(layers: int) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(layers)))


def train(model: Any) -> bool:
    """Whether gradients are the mean of those of all ranks, whose inputs are 1, 2, …"""
    for _ in range(STEPS):
        model.zero_grad()
        model(torch.full((1, WIDTH), 1.0 + dist.get_rank())).sum().backward()
    mean = (1 + dist.get_world_size()) / 2
    alone = make(len(model.module))
    alone(torch.full((1, WIDTH), mean)).sum().backward()
    return all(
        torch.allclose(a.grad, b.grad, rtol=1e-4, atol=1e-6) for a, b in zip(model.parameters(), alone.parameters())
    )


def main() -> None:
    braid.torch.enable()
    dist.init_process_group("gloo")
    way = sys.argv[1]
    kept: list[Any] = []
    rows = []
    for wrap in range(2 * WRAPS if way == "other" else WRAPS):
        model = DistributedDataParallel(make(layers_of(way, wrap)))
        if way == "apart" and dist.get_rank() == 1:
            kept = [*kept[-1:], model]
        right = train(model)
        dist.barrier()
        rows.append({"right": right, "arenas": held("arena"), "handles": registered(model),
                     "tensors": tensors_of_jobs(model)})  # fmt: skip
    report(rows=rows)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
