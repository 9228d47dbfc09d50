# SPDX-License-Identifier: Apache-2.0
"""A script that has never heard of braid, with an optimizer of torch; afterwards it looks at what was done to it."""

from __future__ import annotations

import copy
import sys
from typing import Any

import torch
import torch.distributed as dist
from report import digest, report
from torch.nn.parallel import DistributedDataParallel

STEPS = 41


class Shifted(torch.nn.Module):
    """A module with more parameters than daemons update in a step."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module
        self.shifts = torch.nn.ParameterList(torch.zeros(()) for _ in range(3000))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.module(inputs) + torch.stack(list(self.shifts)).mean()


def main() -> None:
    how = sys.argv[1]
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(7)
    module = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 5))
    target = torch.randn(20, 5) / 4
    if how == "many":
        module = Shifted(module)
    model: Any = module if how == "plain" else DistributedDataParallel(module)
    if how == "hook":
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        model.register_comm_hook(None, default_hooks.allreduce_hook)
    if how == "adamw":
        optimizer: Any = torch.optim.AdamW(model.parameters(), lr=0.01)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 20, gamma=0.5)
    torch.manual_seed(100 + rank)
    losses, best = [], None
    scaler = torch.amp.GradScaler("cpu", init_scale=128.0, enabled=how == "scaler")
    for step in range(STEPS):
        model.train()
        inputs = torch.randn(32, 20)
        loss = torch.nn.functional.mse_loss(model(inputs), inputs @ target)
        optimizer.zero_grad()
        # Rank 1 alone finds an infinity, before and after the warm-up.
        factor = float("inf") if rank == 1 and step in (2, 12) else 1.0
        scaler.scale(loss * factor if how == "scaler" else loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        losses.append(loss.item())
        if step % 10 == 7 and rank == 0:
            # On one rank, as scripts do.
            model.eval()
            best = copy.deepcopy((module.state_dict(), optimizer.state_dict()))
    apart = digest(module.parameters())
    saved = digest(module.state_dict().values())
    report(losses=losses, apart=apart, saved=saved, kept=best is not None, scale=scaler.get_scale())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
