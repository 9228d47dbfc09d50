# SPDX-License-Identifier: Apache-2.0
"""Models in DistributedDataParallel whose gradients an optimizer of braid reduces itself, all or some."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from report import digest, report
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

import braid.torch

STEPS = 8


def make_module() -> Any:
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(6, 9), torch.nn.GELU(), torch.nn.Linear(9, 3)).double()


def step(model: Any, number: int, *optimizers: Any) -> None:
    generator = torch.Generator().manual_seed(1000 * number + dist.get_rank())
    inputs = torch.randn(8, 6, generator=generator, dtype=torch.float64)
    for optimizer in optimizers:
        optimizer.zero_grad()
    (model(inputs) - inputs[:, :3].sin()).square().mean().backward()
    for optimizer in optimizers:
        optimizer.step()


def sgd(parameters: Any) -> Any:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def sharded(parameters: Any) -> Any:
    return braid.torch.ShardedOptimizer(parameters, torch.optim.SGD, lr=0.1, momentum=0.9)


def trained(*make: Any, group: Any = None, cap_mb: float = 25) -> Any:
    """By an optimizer for all, or one for each linear layer."""
    module = make_module()
    model = DistributedDataParallel(module, process_group=group, bucket_cap_mb=cap_mb)
    parts = [model.parameters()] if len(make) == 1 else [module[0].parameters(), module[2].parameters()]
    optimizers = [each(part) for each, part in zip(make, parts)]
    for number in range(STEPS):
        step(model, number, *optimizers)
    return module


def changed_in_the_middle() -> Any:
    """The optimizer of torch gives way to one of braid without momentum to lose."""
    module = make_module()
    model = DistributedDataParallel(module)
    optimizer = sgd(model.parameters())
    for number in range(STEPS // 2):
        step(model, number, optimizer)
    state = optimizer.state_dict()
    optimizer = sharded(model.parameters())
    optimizer.load_state_dict(state)
    for number in range(STEPS // 2, STEPS):
        step(model, number, optimizer)
    return module


def and_back() -> Any:
    """Then DDP reduces again."""
    module = make_module()
    model = DistributedDataParallel(module)
    optimizer = sharded(model.parameters())
    for number in range(STEPS // 2):
        step(model, number, optimizer)
    state = optimizer.state_dict()
    del optimizer
    optimizer = sgd(model.parameters())
    optimizer.load_state_dict(state)
    for number in range(STEPS // 2, STEPS):
        step(model, number, optimizer)
    return module


def refusal(begin: Callable[[Any], Any]) -> str:
    model = DistributedDataParallel(make_module())
    try:
        kept = begin(model)
    except RuntimeError as error:
        return str(error)
    return f"no error, but {kept}"


def hook_then_optimizer(model: Any) -> Any:
    model.register_comm_hook(None, default_hooks.allreduce_hook)
    return sharded(model.parameters())


def optimizer_then_hook(model: Any) -> Any:
    optimizer = sharded(model.parameters())
    model.register_comm_hook(None, default_hooks.allreduce_hook)
    return optimizer


def main() -> None:
    if sys.argv[1] == "enabled":
        braid.torch.enable()
    else:
        braid.torch.register()
    dist.init_process_group("braid")
    ways = {
        "all": trained(sharded),
        "first layer": trained(sharded, sgd),
        "last layer": trained(sgd, sharded),
        "both": trained(sharded, sharded),
        "small buckets": trained(sgd, sharded, cap_mb=2**-20),
        "changed in the middle": changed_in_the_middle(),
        "and back": and_back(),
    }
    if sys.argv[1] != "enabled":
        gloo = dist.new_group(backend="gloo")
        ways["over gloo"] = trained(sharded, group=gloo)
        ways["last layer over gloo"] = trained(sgd, sharded, group=gloo)
    expected = list(trained(sgd).parameters())
    report(
        far={
            way: max((a - b).abs().max().item() for a, b in zip(module.parameters(), expected))
            for way, module in ways.items()
        },
        gradients={way: [digest([p.grad]) for p in module.parameters()] for way, module in ways.items()},
        digests={way: digest(module.parameters()) for way, module in ways.items()},
        refusals=[refusal(hook_then_optimizer), refusal(optimizer_then_hook)],
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
