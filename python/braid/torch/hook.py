# SPDX-License-Identifier: Apache-2.0
"""DDP communication hook: the daemon sees single parameters instead of DDP's buckets.

    state = braid.torch.DDPHookState(model)
    model.register_comm_hook(state, braid.torch.ddp_hook)

DDP rebuilds its buckets after the first iteration, so a bucket is no name to agree on; a parameter
is. Knowing parameters and their order, the daemon may merge and order them as its plan says.

(No postponed annotations in this file: DDP inspects those of the hook.)
"""

import ctypes
from typing import Any, Optional

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from braid import TensorSpec
from braid.torch.carriage import dtype_of
from braid.torch.engine import unpack_whole
from braid.torch.process_group import BraidProcessGroup
from braid.torch.work import BraidWork


class DDPHookState:
    """The model's parameters as tensors of the group's job. Make it on all ranks, in one order."""

    def __init__(
        self, model: torch.nn.Module, process_group: Optional[dist.ProcessGroup] = None
    ) -> None:
        group = process_group or _group_of(model)
        if not isinstance(group, BraidProcessGroup):
            raise TypeError(
                f"braid's DDP hook needs a process group of the backend braid, "
                f"this one is {type(group).__name__}"
            )
        module = model.module if isinstance(model, DistributedDataParallel) else model
        named = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
        prefix = group.next_prefix()
        specs = [
            TensorSpec(f"{prefix}/{name}", dtype, parameter.numel(), len(named) - 1 - place)
            for place, (name, parameter) in enumerate(named)
            if (dtype := dtype_of(parameter.dtype)) is not None
        ]
        carried = [p for _, p in named if dtype_of(p.dtype) is not None]
        handles = group.engine.job.register(specs) if specs else []
        self.group = group
        self.handles = {id(p): handle for p, handle in zip(carried, handles)}
        # Keeps the ids above from being given to other tensors.
        self._parameters = carried
        self.step = -1


def ddp_hook(state: DDPHookState, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages one bucket. Gradients are scaled before the sum, as DDP itself does it."""
    if bucket.index() == 0:
        # DDP starts its buckets in order, each parameter in one of them: one step an iteration.
        state.step += 1
    buffer = bucket.buffer()
    group = state.group
    factor = 1.0 / group.size()
    handles = [state.handles.get(id(parameter)) for parameter in bucket.parameters()]
    elements = sum(parameter.numel() for parameter in bucket.parameters())
    if None in handles or elements != buffer.numel() or dtype_of(buffer.dtype) is None:
        # A type that braid has not, a parameter added later, or a bucket with gaps in it.
        buffer.mul_(factor)
        return group.allreduce([buffer]).get_future().then(_first)
    return _all_reduce(state, handles, buffer, factor)


def _all_reduce(
    state: DDPHookState, handles: list[Any], buffer: torch.Tensor, factor: float
) -> torch.futures.Future[torch.Tensor]:
    engine = state.group.engine
    memory = engine.arena.take(max(1, buffer.nbytes))
    raw = (ctypes.c_ubyte * max(1, buffer.nbytes)).from_address(memory.address)
    scaled = torch.frombuffer(raw, dtype=buffer.dtype, count=buffer.numel())
    if buffer.is_cuda:
        result = torch.empty(buffer.shape, dtype=buffer.dtype, device="cpu")
        scaled.copy_(buffer.detach() * factor)
    else:
        # One pass instead of two: the scaling is the copy into the arena.
        result = buffer
        torch.mul(buffer.detach(), factor, out=scaled)
    work = BraidWork(buffer)
    engine.run_bucket(
        handles, state.step, memory, unpack_whole([result]), work, wait=buffer.is_cuda
    )
    if buffer.is_cuda:
        work.wait()
        buffer.copy_(result)
    return work.get_future()


def _first(future: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
    return future.value()[0]


def _group_of(model: torch.nn.Module) -> dist.ProcessGroup:
    if isinstance(model, DistributedDataParallel):
        return model.process_group
    return dist.distributed_c10d._get_default_group()
