# SPDX-License-Identifier: Apache-2.0
"""What PyTorch gives to its own backends, asked of a group of braid's."""

from __future__ import annotations

import logging
import shutil
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from report import Heard, report
from torch._C._distributed_c10d import BuiltinCommHookType
from torch.nn.parallel import DistributedDataParallel

import braid.torch

SHORT = timedelta(seconds=1)
LONG = timedelta(seconds=120)
TOLERANCES = {BuiltinCommHookType.ALLREDUCE: 1e-6, BuiltinCommHookType.FP16_COMPRESS: 1e-3}


def make_model() -> torch.nn.Module:
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(50, 30), torch.nn.GELU(), torch.nn.Linear(30, 3))


def gradients(model: torch.nn.Module, rank: int) -> list[torch.Tensor]:
    model.zero_grad()
    inputs = torch.randn(8, 50, generator=torch.Generator().manual_seed(rank))
    model(inputs).square().mean().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def builtin_hooks(size: int) -> None:
    """As many passes as DDP needs to have its last buckets, compared with averages made here."""
    each = [gradients(make_model(), rank) for rank in range(size)]
    expected = [torch.stack(parts).mean(0) for parts in zip(*each)]
    for hook, tolerance in TOLERANCES.items():
        model = DistributedDataParallel(make_model())
        model._register_builtin_comm_hook(hook)
        for _ in range(4):
            for ours, theirs in zip(gradients(model, dist.get_rank()), expected):
                torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
        if hook == BuiltinCommHookType.FP16_COMPRESS:
            ours = gradients(model, dist.get_rank())
            assert all(torch.equal(tensor, tensor.half().float()) for tensor in ours), "compressed"


def async_save(rank: int) -> None:
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, 0)
    saved = {"weight": torch.full((100,), 5.0), "step": 3}
    checkpoint.async_save(saved, checkpoint_id=folder[0]).result()
    dist.barrier()
    loaded = {"weight": torch.zeros(100), "step": 0}
    checkpoint.load(loaded, checkpoint_id=folder[0])
    assert loaded["step"] == 3 and torch.equal(loaded["weight"], saved["weight"]), loaded
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder[0])


def monitored_barrier(rank: int) -> list[str]:
    """Everybody comes to the first and the last. Rank 1 does not come to the others."""
    said = []
    dist.monitored_barrier(timeout=LONG)
    side = dist.new_group()
    for wait_all_ranks in (False, True):
        if rank != 1:
            try:
                # Those that came hear of it from rank 0, so they may wait longer than it does.
                dist.monitored_barrier(side, SHORT if rank == 0 else LONG, wait_all_ranks)
            except RuntimeError as error:
                said.append(str(error))
    dist.monitored_barrier(timeout=LONG)
    return said


def timeout(rank: int) -> str:
    """Only rank 0 comes."""
    side = dist.new_group()
    if rank != 0:
        return ""
    options = dist.AllreduceOptions()
    options.timeout = SHORT
    try:
        side.allreduce([torch.ones(1)], options).get_future().wait()
    except RuntimeError as error:
        return str(error)
    return "no error"


def profiler(rank: int, size: int) -> list[list[object]]:
    tensor, block = torch.ones(5, 2), torch.zeros(3)
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        dist.all_reduce(tensor)
        dist.reduce(tensor, 0)
        dist.all_reduce(tensor, async_op=True).wait()
        dist.broadcast(tensor, 1)
        dist.all_gather([torch.zeros(3) for _ in range(size)], block)
        dist.reduce_scatter_tensor(block, torch.zeros(3 * size))
        dist.barrier()
    dist.all_reduce(tensor)  # No longer seen.
    return [
        [event.name, event.input_shapes, event.is_async]
        for event in profile.function_events
        if event.name.startswith("braid:")
    ]


def main() -> None:
    heard = Heard(logging.INFO)
    logging.getLogger("braid").setLevel(logging.INFO)
    braid.torch.register()
    dist.init_process_group("braid")
    rank, size = dist.get_rank(), dist.get_world_size()
    builtin_hooks(size)
    async_save(rank)
    said = monitored_barrier(rank)
    timed_out = timeout(rank)
    dist.barrier()
    events = profiler(rank, size)
    told = [line for line in heard.texts if "braid carries job" in line]
    report(said=said, timed_out=timed_out, events=events, told=told)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
