# SPDX-License-Identifier: Apache-2.0
"""Trains once with each of torch's communication hooks for DDP that is named: `torch_hooks.py HOOK…`.

A script that says "gloo"; BRAID_ENABLE=1 makes braid of it. Its models have several buckets.
"""

from __future__ import annotations

import faulthandler
import sys
from typing import Any

import torch
import torch.distributed as dist
from report import digest, report
from torch.distributed.algorithms.ddp_comm_hooks import (
    default_hooks,
    powerSGD_hook,
    quantization_hooks,
)
from torch.nn.parallel import DistributedDataParallel

STEPS = 30
# A hook that waits for itself is seen by this, with all threads' stacks.
SECONDS = 240
HOOKS = {
    "fp16": default_hooks.fp16_compress_hook,
    "bf16": default_hooks.bf16_compress_hook,
    "powersgd": powerSGD_hook.powerSGD_hook,
    "batched-powersgd": powerSGD_hook.batched_powerSGD_hook,
    "quantize-per-tensor": quantization_hooks.quantization_pertensor_hook,
    "quantize-per-channel": quantization_hooks.quantization_perchannel_hook,
}


def repair_batched_powersgd() -> None:
    """It gives torch's own function a matrix where that takes a list of them only."""
    of_torch = powerSGD_hook._orthogonalize

    def orthogonalize(matrices: torch.Tensor, epsilon: float = 0) -> None:
        of_torch(matrices if matrices.dim() == 3 else matrices.unsqueeze(0), epsilon)

    powerSGD_hook._orthogonalize = orthogonalize


def train(hook: str) -> dict[str, Any]:
    torch.manual_seed(7)
    layers = [torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh()]
    module = torch.nn.Sequential(*layers, torch.nn.Linear(64, 5))
    model = DistributedDataParallel(module, bucket_cap_mb=2**-7)
    if hook != "none":
        state = None
        if "powersgd" in hook:
            state = powerSGD_hook.PowerSGDState(
                None, matrix_approximation_rank=4, start_powerSGD_iter=2, min_compression_rate=1
            )
        model.register_comm_hook(state, HOOKS[hook])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    target = torch.randn(20, 5)
    torch.manual_seed(100 + dist.get_rank())
    losses = []
    for _ in range(STEPS):
        inputs = torch.randn(32, 20)
        loss = torch.nn.functional.mse_loss(model(inputs), inputs @ target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    buckets = len(model.reducer._get_zeros_like_grad_buckets())
    return {"losses": losses, "digest": digest(model.parameters()), "buckets": buckets}


def main() -> None:
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    repair_batched_powersgd()
    dist.init_process_group("gloo")
    report(backend=dist.get_backend(), trained={hook: train(hook) for hook in sys.argv[1:]})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
