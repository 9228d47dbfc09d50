# SPDX-License-Identifier: Apache-2.0
"""Trains a small model with fully_shard and reports losses and the bits of the whole parameters."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from report import digest, report
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def main() -> None:
    backend = sys.argv[1]
    if backend == "braid":
        import braid.torch

        braid.torch.register()
    dist.init_process_group(backend)
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(7)
    model = torch.nn.Sequential(
        torch.nn.Linear(37, 101), torch.nn.ReLU(), torch.nn.Linear(101, 64), torch.nn.Linear(64, 5)
    )
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    data = torch.Generator().manual_seed(100 + rank)
    losses = []
    for _ in range(8):
        inputs = torch.randn(16, 37, generator=data)
        targets = torch.randn(16, 5, generator=data)
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    whole = [p.full_tensor() for p in model.parameters()]
    report(losses=losses, digest=digest(whole), norm=sum(p.norm().item() for p in whole))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
