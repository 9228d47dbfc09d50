# SPDX-License-Identifier: Apache-2.0
"""Trains a small model with DDP, once for each variant, and reports losses and the bits of its parameters.

An ordinary torch script: nothing in it knows of braid but the hook, which is asked for by name.

views: gradients are views of the buckets. unused: ranks use different parameters.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
import torch.distributed as dist
from report import digest, report
from torch.nn.parallel import DistributedDataParallel


class Model(torch.nn.Module):
    """Convolution and batch norm (buffers to broadcast), and a head that may go unused."""

    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, padding=1),
            torch.nn.BatchNorm2d(16),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(16 * 8 * 8, 256),
            torch.nn.ReLU(),
            torch.nn.Linear(256, 10),
        )
        self.extra = torch.nn.Linear(10, 10)

    def forward(self, images: torch.Tensor, use_extra: bool) -> torch.Tensor:
        scores = self.body(images)
        return self.extra(scores) if use_extra else scores


def train(variant: str, hook: bool) -> dict[str, Any]:
    rank = dist.get_rank()
    torch.manual_seed(rank)  # DDP must make the models equal.
    model = DistributedDataParallel(
        Model(),
        bucket_cap_mb=0.25,
        find_unused_parameters=variant == "unused",
        gradient_as_bucket_view=variant == "views",
    )
    if hook:
        import braid.torch

        model.register_comm_hook(braid.torch.DDPHookState(model), braid.torch.ddp_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = torch.Generator().manual_seed(100 + rank)
    losses = []
    for step in range(12):
        images = torch.randn(8, 3, 8, 8, generator=data)
        labels = torch.randint(0, 10, (8,), generator=data)
        use_extra = variant != "unused" or (step + rank) % 2 == 0
        loss = torch.nn.functional.cross_entropy(model(images, use_extra), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    return {
        "losses": losses,
        "digest": digest(model.parameters()),
        "norm": flat.double().norm().item(),
        "sample": flat[:: max(1, flat.numel() // 500)].tolist(),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--hook", action="store_true")
    parser.add_argument("variants", nargs="+", choices=["plain", "views", "unused"])
    options = parser.parse_args()
    if options.backend == "braid":
        import braid.torch

        braid.torch.register()
    dist.init_process_group(options.backend)
    report(variants={variant: train(variant, options.hook) for variant in options.variants})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
