# SPDX-License-Identifier: Apache-2.0
"""torch's communication hooks for DDP, by the names of systems.HOOKS."""

from torch.distributed.algorithms.ddp_comm_hooks import (
    default_hooks,
    powerSGD_hook,
    quantization_hooks,
)
from torch.nn.parallel import DistributedDataParallel

_RANK = 4
_FIRST_STEP = 2  # the earliest that torch allows with error feedback; DDP has its final buckets then


def register(model: DistributedDataParallel, name: str) -> None:
    state = None
    if "powersgd" in name:
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=_RANK, start_powerSGD_iter=_FIRST_STEP
        )
    hook = {
        "fp16": default_hooks.fp16_compress_hook,
        "bf16": default_hooks.bf16_compress_hook,
        "powersgd": powerSGD_hook.powerSGD_hook,
        "batched-powersgd": powerSGD_hook.batched_powerSGD_hook,
        "quantize-per-tensor": quantization_hooks.quantization_pertensor_hook,
        "quantize-per-channel": quantization_hooks.quantization_perchannel_hook,
    }[name]
    model.register_comm_hook(state, hook)
