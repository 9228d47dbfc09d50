# SPDX-License-Identifier: Apache-2.0
"""Trains a small model with fully_shard on a mesh of nodes × ranks, and reports losses and the bits of the whole
parameters: `hsdp.py BACKEND [REPLICATE SHARD]`, of the default group and of the mesh's two levels."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from report import digest, report
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import braid.torch

LEVELS = ("replicate", "shard")


def main() -> None:
    backend, *overrides = sys.argv[1:]
    braid.torch.register()
    dist.init_process_group(backend)
    rank, local = dist.get_rank(), int(os.environ["LOCAL_WORLD_SIZE"])
    more = {"backend_override": dict(zip(LEVELS, overrides))} if overrides else {}
    mesh = init_device_mesh("cpu", (dist.get_world_size() // local, local), mesh_dim_names=LEVELS, **more)
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(37, 101), torch.nn.ReLU(), torch.nn.Linear(101, 5))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
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
    backends = [dist.get_backend(mesh[level].get_group()) for level in LEVELS]
    report(losses=losses, digest=digest(p.full_tensor() for p in model.parameters()), backends=backends)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
