# SPDX-License-Identifier: Apache-2.0
"""Trains a small model with DDP, and reports losses and the bits of its parameters: `ddp.py BACKEND [hook]`.

An ordinary torch script: nothing in it knows of braid but the hook, which is asked for by name.
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from report import digest, report
from torch.nn.parallel import DistributedDataParallel


def make_model() -> torch.nn.Module:
    """Convolution and batch norm, which has buffers to broadcast."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(16 * 8 * 8, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10),
    )  # fmt: skip


def main() -> None:
    backend, *hook = sys.argv[1:]
    if backend == "braid":
        import braid.torch

        braid.torch.register()
    dist.init_process_group(backend)
    rank = dist.get_rank()
    torch.manual_seed(rank)  # DDP must make the models equal.
    model = DistributedDataParallel(make_model(), bucket_cap_mb=0.25)
    if hook:
        model.register_comm_hook(braid.torch.DDPHookState(model), braid.torch.ddp_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = torch.Generator().manual_seed(100 + rank)
    losses = []
    for _ in range(12):
        images = torch.randn(8, 3, 8, 8, generator=data)
        labels = torch.randint(0, 10, (8,), generator=data)
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    sample = flat[:: max(1, flat.numel() // 500)].tolist()
    report(losses=losses, digest=digest(model.parameters()), norm=flat.double().norm().item(), sample=sample)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
