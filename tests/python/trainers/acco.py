# SPDX-License-Identifier: Apache-2.0
"""One rank of trainings with Acco, each next to torch's own optimizer that does the same on all ranks' batches."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from report import digest, report
from sharded import OPTIMIZERS, Lion, backward, dtype_of, far, make_model
from torch.nn.parallel import DistributedDataParallel

import braid.torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import quadratics  # noqa: E402

CALLS = 61
CENTRES = (1.0, -3.0, 2.5, 7.0)


def on_quadratics(calls: int) -> dict[str, Any]:
    x = torch.nn.Parameter(torch.tensor([quadratics.START], dtype=torch.float64))
    optimizer = braid.torch.Acco([x], torch.optim.SGD, lr=quadratics.LR, momentum=0.8, weight_decay=0.02)
    seen = []
    for _ in range(calls):
        x.grad = (x.detach() - CENTRES[dist.get_rank()]).clone()
        optimizer.step()
        seen.append(x.item())
    optimizer.finish()
    return {"seen": seen, "end": x.item()}


class Reference:
    """torch's own optimizer on the mean gradient of all ranks, and a copy of it for estimates."""

    def __init__(self, kind: Any, options: dict[str, Any], dtype: torch.dtype) -> None:
        self.kind, self.options, self.dtype = kind, options, dtype
        self.model = make_model(dtype)
        self.optimizer = kind(self.model.parameters(), **options)

    def train(self, calls: int) -> Any:
        shown = estimate = copy.deepcopy(self.model)
        halves: list[Any] = []
        for call in range(calls):
            means = self._mean_gradients(shown, call)
            if call % 2 == 0:
                halves, shown, estimate = means, copy.deepcopy(self.model), copy.deepcopy(self.model)
                trial = self.kind(estimate.parameters(), **self.options)
                trial.load_state_dict(copy.deepcopy(self.optimizer.state_dict()))
                self._step(estimate, trial, means)
            else:
                self._step(self.model, self.optimizer, [(a + b) / 2 for a, b in zip(halves, means)])
                shown = estimate
        if calls % 2:
            self._step(self.model, self.optimizer, halves)
        return self.model

    def _mean_gradients(self, model: Any, call: int) -> list[Any]:
        model.zero_grad()
        for rank in range(dist.get_world_size()):
            backward(model, call, rank, self.dtype, 1 / dist.get_world_size())
        return [parameter.grad.clone() for parameter in model.parameters()]

    def _step(self, model: Any, optimizer: Any, gradients: list[Any]) -> None:
        for parameter, gradient in zip(model.parameters(), gradients):
            parameter.grad = gradient
        optimizer.step()


class Training:
    def __init__(
        self, kind: Any, options: dict[str, Any], dtype: torch.dtype, *, wrap: bool = False, **more: Any
    ) -> None:
        self.module, self.dtype = make_model(dtype), dtype
        self.model = DistributedDataParallel(self.module) if wrap else self.module
        self.optimizer = braid.torch.Acco(
            self.model.parameters(), "lion" if kind is Lion else kind, model=self.model, **options, **more
        )
        self.digests: list[str] = []

    def train(self, first: int, last: int) -> None:
        for call in range(first, last):
            self.optimizer.zero_grad()
            backward(self.model, call, dist.get_rank(), self.dtype)
            self.optimizer.step()
            self.digests.append(self.digest())

    def digest(self) -> str:
        return digest([parameter.view(torch.uint8) for parameter in self.module.parameters()])


def compared(name: str, dtype: torch.dtype | None = None, **more: Any) -> dict[str, Any]:
    (kind, options), dtype = OPTIMIZERS[name], dtype or dtype_of(name)
    training = Training(kind, options, dtype, **more)
    training.train(0, CALLS)
    training.optimizer.finish()
    expected = Reference(kind, options, dtype).train(CALLS)
    return {
        "digests": [*training.digests, training.digest()],
        "far": far(copy.deepcopy(training.module), expected),
        "moved": far(make_model(dtype), expected),
    }


def resumed(name: str, at: int) -> dict[str, Any]:
    """A run that is saved on its way, and the one that goes on from there."""
    (kind, options), dtype = OPTIMIZERS[name], dtype_of(name)
    whole, saved, again = (Training(kind, options, dtype) for _ in range(3))
    whole.train(0, CALLS)
    saved.train(0, at)
    state = copy.deepcopy(saved.optimizer.state_dict())
    again.module.load_state_dict(saved.module.state_dict())
    again.optimizer.load_state_dict(state)
    for training in (saved, again):
        training.train(at, CALLS)
    for training in (whole, saved, again):
        training.optimizer.finish()
    return {
        "digests": [training.digest() for training in (whole, saved, again)],
        "far": far(copy.deepcopy(again.module), whole.module),
    }


def main() -> None:
    braid.torch.register()
    dist.init_process_group("braid")
    ways = {name: compared(name) for name in ("momentum", "nesterov", "adamw", "lion")}
    ways["ddp"] = compared("adamw", wrap=True)
    ways["float64"] = compared("adamw", torch.float64)
    ways["bfloat16"] = compared("adamw", torch.bfloat16)
    ways["float16"] = compared("momentum", torch.float16)
    ways["pull bf16"] = compared("adamw", pull="bf16")
    ways["int8"] = compared("adamw", codec="int8")
    ways["2bit"] = compared("momentum", codec="2bit:threshold=0.02")
    report(
        ways=ways,
        quadratics={calls: on_quadratics(calls) for calls in (20, 21)},
        resumed={f"{name} {at}": resumed(name, at) for name in ("momentum", "adamw") for at in (30, 31)},
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
