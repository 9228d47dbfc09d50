# SPDX-License-Identifier: Apache-2.0
"""Two delayed optimizers of 2,500 parameters each on one process group, and a third, which has no room."""

from __future__ import annotations

import torch
import torch.distributed as dist
from report import report

import braid.torch

COUNT = 2500
STEPS = 3
LEARNING_RATE = 0.5


def parameters() -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(torch.zeros(())) for _ in range(COUNT)]


def optimizer_of(some: list[torch.nn.Parameter]) -> braid.torch.DelayedOptimizer:
    return braid.torch.DelayedOptimizer(some, "od-sgd", lr=LEARNING_RATE, warmup_steps=0)


def main() -> None:
    braid.torch.register()
    dist.init_process_group("braid")
    models = [parameters(), parameters()]
    optimizers = [optimizer_of(model) for model in models]
    for _ in range(STEPS):
        for model in models:
            for place, parameter in enumerate(model):
                parameter.grad = torch.tensor(float(place % 5 + 2 * dist.get_rank()))
        for optimizer in optimizers:
            optimizer.step()
    for optimizer in optimizers:
        optimizer.finish()
    # The mean gradient of two ranks is one more than rank 0's.
    right = all(
        parameter.item() == -LEARNING_RATE * STEPS * (place % 5 + 1)
        for model in models
        for place, parameter in enumerate(model)
    )
    third = optimizer_of(parameters())
    try:
        third.step()
        text = ""
    except ValueError as error:
        text = str(error)
    del optimizers, optimizer
    third.step()  # There is room where others are gone.
    third.finish()
    report(right=right, text=text)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
