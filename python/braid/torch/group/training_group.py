# SPDX-License-Identifier: Apache-2.0
"""What optimizers that work together ask of a process group before they begin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

from braid.torch.group.process_group import BraidProcessGroup

_BROADCAST_BYTES = 64 << 20


def braid_group(process_group: Any, who: str) -> BraidProcessGroup:
    """The group given, or the default one. TypeError says what would be right."""
    group = process_group
    if group is None:
        if not dist.is_initialized():
            raise RuntimeError(f'{who}: call torch.distributed.init_process_group("braid") first')
        group = dist.distributed_c10d._get_default_group()
    if not isinstance(group, BraidProcessGroup):
        raise TypeError(
            f"{who} needs a process group of the backend braid, this one is {backend_of(group)}: "
            f'call init_process_group("braid"), or set BRAID_ENABLE=1 (which leaves NCCL to groups '
            "within one node)"
        )
    return group


def backend_of(group: Any) -> str:
    """For messages."""
    try:
        return f"of the backend {dist.get_backend(group)}"
    except Exception:  # torch does not know it.
        return type(group).__name__


def names_of(
    groups: Sequence[Mapping[str, Any]], model: torch.nn.Module | None
) -> dict[torch.Tensor, str]:
    """A name for each parameter of an optimizer: the model's, the group's, or its place."""
    parameters = [parameter for group in groups for parameter in group["params"]]
    given = [name for group in groups for name in group.get("param_names", ())]
    names = dict(zip(map(id, parameters), given)) if len(given) == len(parameters) else {}
    if model is not None:
        is_ddp = isinstance(model, torch.nn.parallel.DistributedDataParallel)
        module = model.module if is_ddp else model
        names = {**names, **{id(p): name for name, p in module.named_parameters()}}
    return {p: names.get(id(p), f"#{place}") for place, p in enumerate(parameters)}


def average(group: BraidProcessGroup, tensors: Iterable[torch.Tensor]) -> None:
    """Over all ranks, in place; those of one type together."""
    group.allreduce(sorted(tensors, key=lambda tensor: str(tensor.dtype)), ReduceOp.AVG).wait()


def broadcast_from_first(group: BraidProcessGroup, tensors: Sequence[torch.Tensor]) -> None:
    """Gives all ranks the values of the group's first one, as DDP does at its beginning."""
    batch: list[torch.Tensor] = []
    nbytes = 0
    for tensor in tensors:
        if batch and nbytes + tensor.nbytes > _BROADCAST_BYTES:
            group.broadcast(batch, root=0).wait()
            batch, nbytes = [], 0
        batch.append(tensor.detach())
        nbytes += tensor.nbytes
    if nbytes:
        group.broadcast(batch, root=0).wait()
