# SPDX-License-Identifier: Apache-2.0
"""Trains with each optimizer of braid, its parameters in the CPU's memory and then on the fake driver's GPU, and
reports whether both have given the same bits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fake_driver import FakeDriverCuda  # noqa: E402
from report import report  # noqa: E402

import braid.torch  # noqa: E402
from braid.torch.operations import devices  # noqa: E402

STEPS = 8
SHAPES = [(300, 200), (200,), (7,)]


def adamw(kind: str, **options: Any) -> Any:
    return lambda parameters: getattr(braid.torch, kind)(parameters, torch.optim.AdamW, lr=0.01, **options)


def delayed(**options: Any) -> Any:
    return lambda parameters: braid.torch.DelayedOptimizer(parameters, lr=0.05, momentum=0.9, **options)


METHODS = {
    "sharded": adamw("ShardedOptimizer"),
    "sharded int8": adamw("ShardedOptimizer", codec="int8"),
    "sharded bf16": adamw("ShardedOptimizer", pull="bf16"),
    "acco": adamw("Acco"),
    "od-sgd": delayed(warmup_steps=2, worker="rank"),
    "ssd-sgd": delayed(method="ssd-sgd", pull_every=2, warmup_steps=0, worker="rank"),
    "a node's ranks together": delayed(warmup_steps=0),
}


def trained(make: Any, put: Callable[[torch.Tensor], torch.Tensor], dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    values = [torch.randn(shape, generator=generator).to(dtype) for shape in SHAPES]
    parameters = [torch.nn.Parameter(put(each)) for each in values]
    optimizer = make(parameters)
    noise = torch.Generator().manual_seed(100 + dist.get_rank())
    for _ in range(STEPS):
        for parameter in parameters:
            drawn = torch.randn(parameter.shape, generator=noise)
            parameter.grad = put((parameter.detach().float() + drawn).to(dtype))
        optimizer.step()
        for parameter in parameters:
            parameter.grad.fill_(float("nan"))  # It is the script's again.
    if hasattr(optimizer, "finish"):
        optimizer.finish()
    return [parameter.detach().clone() for parameter in parameters]


def main() -> None:
    braid.torch.register()
    dist.init_process_group("braid")
    methods = {name: (make, torch.float32) for name, make in METHODS.items()}
    methods["sharded half"] = METHODS["sharded"], torch.bfloat16
    here = {name: trained(make, torch.clone, dtype) for name, (make, dtype) in methods.items()}
    cuda = devices.cuda = FakeDriverCuda()
    same, copies = {}, {}
    for name, (make, dtype) in methods.items():
        before = cuda.counts()["copies"]
        there = trained(make, cuda.put, dtype)
        same[name] = all(torch.equal(a, b) for a, b in zip(there, here[name]))
        copies[name] = cuda.counts()["copies"] - before
    report(same=same, copies=copies, counts=cuda.counts(), holds_of=cuda.holds_of)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
