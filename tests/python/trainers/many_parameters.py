# SPDX-License-Identifier: Apache-2.0
"""DDP of models with many parameters: `many_parameters.py COUNTxELEMENTS …`. What each one's step calls, and whether
its gradients are the mean of all ranks'."""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch.distributed as dist
from report import report
from torch.nn.parallel import DistributedDataParallel

import braid.torch
from braid import Job
from braid.repeated import RepeatedOperation
from braid.torch.ddp.hook import DDPHookState

STEPS = 4  # Two are looked at.
calls = {"hook": 0, "submit": 0, "wait": 0, "result": 0, "release": 0}


def counted(owner: Any, name: str, what: str) -> None:
    original = getattr(owner, name)

    def call(self: Any, *arguments: Any) -> Any:
        calls[what] += 1
        return original(self, *arguments)

    setattr(owner, name, call)


class Model(torch.nn.Module):
    """Every seventh parameter is a scalar, so that gradients are no multiples of anything."""

    def __init__(self, count: int, numel: int) -> None:
        super().__init__()
        sizes = [1 if number % 7 == 0 else numel for number in range(count)]
        self.values = torch.nn.ParameterList(torch.full((size,), 1.0 + place % 5) for place, size in enumerate(sizes))

    def forward(self, factor: float) -> torch.Tensor:
        return sum(values.sum() * (factor * (1 + place % 3)) for place, values in enumerate(self.values))


def train(count: int, numel: int) -> dict[str, Any]:
    model = DistributedDataParallel(Model(count, numel))
    for _ in range(STEPS):
        calls.update(dict.fromkeys(calls, 0))
        model.zero_grad()
        model(1.0 + dist.get_rank()).backward()
    mean = (1 + dist.get_world_size()) / 2
    state = sys.modules["braid.torch.ddp.changed"]._attached[model]
    return {
        "right": all(
            torch.allclose(values.grad, torch.full_like(values, mean * (1 + place % 3)))
            for place, values in enumerate(model.module.values)
        ),
        "bytes": sum(values.nbytes for values in model.module.values),
        "parameters": state._gradients.parameter_count,
        "tensors": state._gradients.tensor_count,
        **calls,
    }


def main() -> None:
    counted(DDPHookState, "average", "hook")
    counted(RepeatedOperation, "submit", "submit")
    counted(Job, "wait_briefly", "wait")
    counted(Job, "result_address", "result")
    counted(Job, "release", "release")
    braid.torch.enable()
    dist.init_process_group("gloo")
    report(models={shape: train(*map(int, shape.split("x"))) for shape in sys.argv[1:]})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
