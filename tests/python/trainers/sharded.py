# SPDX-License-Identifier: Apache-2.0
"""One rank of trainings with ShardedOptimizer, each next to torch's own optimizer on all ranks' batches."""

from __future__ import annotations

import copy
import sys
from typing import Any

import torch
import torch.distributed as dist
from report import digest, report
from torch.nn.parallel import DistributedDataParallel

import braid.torch

STEPS = 100


class Lion(torch.optim.Optimizer):
    """As its paper has it, algorithm 2."""

    def __init__(self, params: Any, lr: float, betas: tuple[float, float], weight_decay: float) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for parameter in group["params"]:
                momentum = self.state[parameter].setdefault("exp_avg", torch.zeros_like(parameter))
                direction = (beta1 * momentum + (1 - beta1) * parameter.grad).sign()
                parameter.sub_(group["lr"] * (direction + group["weight_decay"] * parameter))
                momentum.copy_(beta2 * momentum + (1 - beta2) * parameter.grad)


OPTIMIZERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "sgd": (torch.optim.SGD, {"lr": 0.05}),
    "momentum": (torch.optim.SGD, {"lr": 0.02, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    "nesterov": (torch.optim.SGD, {"lr": 0.02, "momentum": 0.9, "nesterov": True}),
    "adam": (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1}),
    "lion": (Lion, {"lr": 0.003, "betas": (0.9, 0.98), "weight_decay": 0.02}),
    "adamw": (torch.optim.AdamW, {"lr": 0.01, "betas": (0.8, 0.99), "eps": 1e-6}),
}
SHAPE = (20, 33, 5)


def make_model(dtype: torch.dtype) -> Any:
    generator = torch.Generator().manual_seed(7)
    inputs, hidden, outputs = SHAPE
    model = torch.nn.Sequential(
        torch.nn.Linear(inputs, hidden), torch.nn.GELU(), torch.nn.Linear(hidden, hidden), torch.nn.GELU(),
        torch.nn.Linear(hidden, outputs),
    )  # fmt: skip
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return model.to(dtype)


def batch(step: int, rank: int, dtype: torch.dtype) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(1000 * step + rank)
    inputs = torch.randn(16, SHAPE[0], generator=generator)
    return inputs.to(dtype), inputs[:, : SHAPE[2]].sin().to(dtype)


def backward(model: Any, step: int, rank: int, dtype: torch.dtype, share: float = 1) -> None:
    inputs, targets = batch(step, rank, dtype)
    (((model(inputs) - targets) ** 2).mean() * share).backward()


class Reference:
    """torch's own optimizer on the mean gradient of all ranks."""

    def __init__(self, kind: Any, options: dict[str, Any], dtype: torch.dtype) -> None:
        self.model, self.dtype = make_model(dtype), dtype
        self.optimizer = kind(self.model.parameters(), **options)

    def train(self, first: int, last: int) -> None:
        size = dist.get_world_size()
        for step in range(first, last):
            self.optimizer.zero_grad()
            for rank in range(size):
                backward(self.model, step, rank, self.dtype, 1 / size)
            self.optimizer.step()


class Sharded:
    def __init__(
        self, kind: Any, options: dict[str, Any], dtype: torch.dtype, *, wrap: dict[str, Any] | None = None, **more: Any
    ) -> None:
        """`wrap`: the arguments of a DistributedDataParallel around it."""
        self.module, self.dtype = make_model(dtype), dtype
        if dist.get_rank() != 0:
            with torch.no_grad():
                self.module[0].weight.add_(1)  # The first rank's count.
        self.model = DistributedDataParallel(self.module, **wrap) if wrap is not None else self.module
        self.optimizer = braid.torch.ShardedOptimizer(
            self.model.parameters(), "lion" if kind is Lion else kind, model=self.model, **options, **more
        )

    def train(self, first: int, last: int) -> None:
        for step in range(first, last):
            self.optimizer.zero_grad()
            backward(self.model, step, dist.get_rank(), self.dtype)
            self.optimizer.step()
        self.optimizer.synchronize()


def far(model: Any, other: Any) -> float:
    """The largest difference of a parameter, relative to its norm."""
    return max(
        ((mine - its).norm() / its.norm()).item()
        for mine, its in zip(model.double().parameters(), copy.deepcopy(other).double().parameters())
    )


def compared(kind: Any, options: dict[str, Any], dtype: torch.dtype = torch.float32, **more: Any) -> dict[str, Any]:
    sharded, reference = Sharded(kind, options, dtype, **more), Reference(kind, options, dtype)
    sharded.train(0, STEPS)
    reference.train(0, STEPS)
    begun = far(make_model(dtype), reference.model)
    return {
        "digest": digest([p.view(torch.uint8) for p in sharded.module.parameters()]),
        "far": far(copy.deepcopy(sharded.module), reference.model),
        "moved": begun,
    }


def dtype_of(name: str) -> torch.dtype:
    """Lion takes signs: of what is nearly 0, rounding decides."""
    return torch.float64 if name == "lion" else torch.float32


def handed_over(name: str) -> dict[str, Any]:
    """Half a training, whose state goes to torch's optimizer, from there back, and to another one of ours."""
    (kind, options), dtype = OPTIMIZERS[name], dtype_of(name)
    whole, first = Sharded(kind, options, dtype), Sharded(kind, options, dtype)
    whole.train(0, STEPS)
    first.train(0, STEPS // 2)
    saved = copy.deepcopy(first.optimizer.state_dict())
    reference = Reference(kind, options, dtype)
    reference.model.load_state_dict(first.module.state_dict())
    reference.optimizer.load_state_dict(copy.deepcopy(saved))
    again = Sharded(kind, options, dtype)
    again.model.load_state_dict(first.module.state_dict())
    again.optimizer.load_state_dict(copy.deepcopy(reference.optimizer.state_dict()))
    # One that has stepped already.
    used = Sharded(kind, options, dtype)
    used.train(0, 3)
    used.model.load_state_dict(first.module.state_dict())
    used.optimizer.load_state_dict(copy.deepcopy(saved))
    for training in (reference, again, used, first):
        training.train(STEPS // 2, STEPS)
    digests = [digest(each.module.parameters()) for each in (whole, first, again, used)]
    return {"digests": digests, "far": far(copy.deepcopy(whole.module), reference.model)}


def handed_over_in_16_bits(dtype: torch.dtype) -> list[str]:
    kind, options = OPTIMIZERS["adamw"]
    whole, first = Sharded(kind, options, dtype), Sharded(kind, options, dtype)
    whole.train(0, STEPS)
    first.train(0, STEPS // 2)
    again = Sharded(kind, options, dtype)
    again.model.load_state_dict(first.module.state_dict())
    again.optimizer.load_state_dict(copy.deepcopy(first.optimizer.state_dict()))
    again.train(STEPS // 2, STEPS)
    first.train(STEPS // 2, STEPS)
    return [digest([p.view(torch.uint8) for p in each.module.parameters()]) for each in (whole, first, again)]


def overlapped_backward() -> dict[str, str]:
    """The digests of what the same trainings end with, by how they differ from them; the last word is the optimizer."""
    views, unused = {"gradient_as_bucket_view": True}, {"find_unused_parameters": True}
    both = {"overlap_forward": True}
    hows: dict[str, dict[str, Any]] = {
        "": {}, "forward": both, "ddp": {"wrap": {}}, "ddp views": {"wrap": views}, "ddp forward": {"wrap": {}, **both},
        "ddp views forward": {"wrap": views, **both}, "ddp unused": {"wrap": unused},
    }  # fmt: skip
    digests = {}
    for how, more in hows.items():
        for name in ("momentum", "adamw"):
            training = Sharded(*OPTIMIZERS[name], torch.float32, overlap_backward=True, **more)
            training.train(0, STEPS)
            digests[f"{how} {name}".strip()] = digest([p.view(torch.uint8) for p in training.module.parameters()])
    return digests


def used_in_turn(**more: Any) -> str:
    """A layer for each rank and step, none of them in every pass; the third one comes late, on one rank first."""
    model = make_model(torch.float64)
    optimizer = braid.torch.ShardedOptimizer(model.parameters(), torch.optim.AdamW, lr=0.01, model=model, **more)
    rank = dist.get_rank()
    for step in range(STEPS):
        values, targets = batch(step, rank, torch.float64)
        optimizer.zero_grad()
        plain = values[:, :1].expand(-1, SHAPE[1])
        hidden = model[1](model[0](values)) if (step + rank) % 3 else plain
        if step > STEPS // 2 or (step > STEPS // 4 and rank == 1):
            hidden = model[3](model[2](hidden))
        loss = hidden.square().mean() if (step + rank) % 5 == 1 else (model[4](hidden) - targets).square().mean()
        if loss.requires_grad:
            loss.backward()
        optimizer.step()
    optimizer.synchronize()
    return digest(model.parameters())


def main() -> None:
    braid.torch.enable()
    dist.init_process_group("braid")
    ways: dict[str, Any] = {name: compared(*chosen, dtype_of(name)) for name, chosen in OPTIMIZERS.items()}
    adamw = OPTIMIZERS["adamw"]
    ways["float64"] = compared(*adamw, dtype=torch.float64)
    ways["bfloat16"] = compared(*adamw, dtype=torch.bfloat16)
    ways["float16"] = compared(*OPTIMIZERS["momentum"], dtype=torch.float16)
    ways["pull bf16"] = compared(*adamw, pull="bf16")
    ways["overlapped"] = compared(*adamw, overlap_forward=True)
    ways["ddp"] = compared(*adamw, wrap={})
    ways["ddp overlapped"] = compared(*adamw, wrap={}, overlap_forward=True)
    ways["int8"] = compared(*adamw, codec="int8")
    handed = {name: handed_over(name) for name in ("momentum", "adamw", "lion")}
    narrow = {str(dtype): handed_over_in_16_bits(dtype) for dtype in (torch.bfloat16, torch.float16)}
    overlaps = {"backward": {"overlap_backward": True}, "both": {"overlap_backward": True, "overlap_forward": True}}
    in_turn = {name: used_in_turn(**more) for name, more in {"none": {}, **overlaps}.items()}
    report(ways=ways, backward=overlapped_backward(), in_turn=in_turn, handed=handed, narrow=narrow)
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
