# SPDX-License-Identifier: Apache-2.0
"""One rank of trainings with placed optimizers, with DistributedDataParallel and without, next to one rank alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from report import digest, report
from torch.nn.parallel import DistributedDataParallel

import braid.torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from placed_models import SHAPES, STEPS, alone, gradient, make_parameters, optimizer_of, scheduler_of  # noqa: E402


class Model(torch.nn.Module):
    """Its gradients are those of placed_models."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = torch.nn.ParameterDict(make_parameters())

    def forward(self, step: int, rank: int) -> torch.Tensor:
        return sum((part * gradient(step, rank, name)).sum() for name, part in self.parts.items())


def trained(kind: str, model: Any, rank: int) -> dict[str, Any]:
    inner = getattr(model, "module", model)
    parts = {name: inner.parts[name] for name in SHAPES}  # The dictionary of torch sorts them.
    optimizer = braid.torch.placed(optimizer_of(kind, parts))
    scheduler = scheduler_of(optimizer)
    for step in range(STEPS):
        optimizer.zero_grad()
        model(step, rank).backward()
        optimizer.step()
        scheduler.step()
    return {"digest": digest(list(parts.values())), "states": len(optimizer.state)}


def main() -> None:
    braid.torch.enable()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    kinds = [kind for kind in ("Muon", "AdamW") if hasattr(torch.optim, kind)]
    report(
        ways={
            f"{way} {kind}": trained(kind, make(Model()), rank)
            for kind in kinds
            for way, make in (("ddp", DistributedDataParallel), ("plain", torch.nn.Module.train))
        },
        right={kind: digest(list(alone(kind, size)[0].values())) for kind in kinds},
    )


main()
