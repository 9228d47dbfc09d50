# SPDX-License-Identifier: Apache-2.0
"""torch's pipeline schedules, each of a few steps of training: `pipeline.py BACKEND`."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from report import report
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

import braid.torch

WIDTH, BATCH, MICROBATCHES, STEPS = 16, 16, 8, 3


def layer(number: int) -> torch.nn.Module:
    torch.manual_seed(number)
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh())


def stages_of(rank: int, ranks: int, each: int) -> list[PipelineStage]:
    return [
        PipelineStage(layer(rank + ranks * n), rank + ranks * n, ranks * each, torch.device("cpu"))
        for n in range(each)
    ]


def train(name: str) -> list[float]:
    """The losses, on the last rank, and the sums of this rank's gradients."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    stages = stages_of(rank, ranks, 2 if name == "interleaved" else 1)
    loss = torch.nn.MSELoss()
    if name == "gpipe":
        schedule = ScheduleGPipe(stages[0], MICROBATCHES, loss_fn=loss)
    elif name == "1f1b":
        schedule = Schedule1F1B(stages[0], MICROBATCHES, loss_fn=loss)
    else:
        schedule = ScheduleInterleaved1F1B(stages, MICROBATCHES, loss_fn=loss)
    parameters = [p for stage in stages for p in stage.submod.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    random = torch.Generator().manual_seed(7)
    figures = []
    for _ in range(STEPS):
        inputs = torch.randn(BATCH, WIDTH, generator=random)
        target = torch.randn(BATCH, WIDTH, generator=random)
        losses: list[torch.Tensor] = []
        given = [inputs] if rank == 0 else []
        if rank == ranks - 1:
            schedule.step(*given, target=target, losses=losses)
        else:
            schedule.step(*given)
        figures += [one.item() for one in losses]
        figures += [p.grad.double().sum().item() for p in parameters]
        optimizer.step()
        optimizer.zero_grad()
    return figures


def main() -> None:
    backend = sys.argv[1]
    if backend == "braid":
        braid.torch.register()
    dist.init_process_group(backend)
    steps = {name: train(name) for name in ("gpipe", "1f1b", "interleaved")}
    used_gloo = backend == "braid" and dist.group.WORLD._inner.was_used
    report(steps=steps, gloo=used_gloo)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
