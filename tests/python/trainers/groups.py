# SPDX-License-Identifier: Apache-2.0
"""DeviceMesh, DTensor and point-to-point, as scripts use them."""

from __future__ import annotations

import torch
import torch.distributed as dist
from report import report
from torch.distributed.device_mesh import init_device_mesh

import braid.torch


def mesh(rank: int, size: int) -> None:
    grid = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("replicate", "shard"))
    tensor = torch.tensor([float(rank)])
    dist.all_reduce(tensor, group=grid["shard"].get_group())
    row = rank // (size // 2)
    expected = sum(range(row * (size // 2), (row + 1) * (size // 2)))
    assert tensor.item() == expected, (tensor, expected)
    import torch.distributed._functional_collectives as functional

    tensor = functional.all_reduce(torch.tensor([float(rank)]), "sum", grid["replicate"])
    column = rank % (size // 2)
    assert tensor.item() == column * 2 + size // 2, tensor
    tensor = functional.all_gather_tensor(torch.tensor([rank]), 0, dist.group.WORLD)
    assert functional.wait_tensor(tensor).tolist() == list(range(size))
    tensor = functional.reduce_scatter_tensor(torch.arange(2.0 * size), "sum", 0, dist.group.WORLD)
    assert functional.wait_tensor(tensor).tolist() == [2.0 * rank * size, (2.0 * rank + 1) * size]


def distributed_tensor(rank: int, size: int) -> None:
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    line = init_device_mesh("cpu", (size,))
    whole = torch.arange(8.0 * size).view(2 * size, 4)
    sharded = distribute_tensor(whole, line, [Shard(0)])
    assert torch.equal(sharded.redistribute(line, [Replicate()]).to_local(), whole)
    assert sharded.sum().full_tensor().item() == whole.sum().item()


def point_to_point(rank: int, size: int) -> None:
    """A ring in which everybody sends before receiving, and pairs that others take no part in."""
    after, before = (rank + 1) % size, (rank - 1) % size
    sent, received = torch.full((3000,), float(rank)), torch.zeros(3000)
    works = [dist.isend(sent, after), dist.irecv(received, before)]
    dist.barrier()  # All of them are under way while collectives run.
    for work in works:
        work.wait()
    assert torch.equal(received, torch.full((3000,), float(before)))
    if rank == 0:
        dist.send(torch.arange(5), size - 1, tag=7)
    if rank == size - 1:
        tensor = torch.zeros(5, dtype=torch.int64)
        assert dist.recv(tensor, 0, tag=7) == 0
        assert tensor.tolist() == [0, 1, 2, 3, 4]
    tensors = [torch.full((4,), rank, dtype=torch.int8), torch.zeros(4, dtype=torch.int8)]
    operations = [
        dist.P2POp(dist.irecv, tensors[1], before),
        dist.P2POp(dist.isend, tensors[0], after),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert tensors[1].tolist() == [before] * 4, tensors[1]
    if rank == 1:
        sources = set()
        for _ in range(size - 1):
            tensor = torch.zeros(1)
            sources.add(dist.recv(tensor, None))
            assert tensor.item() in range(size)
        assert sources == set(range(size)) - {1}, sources
    else:
        dist.send(torch.tensor([float(rank)]), 1)


def main() -> None:
    braid.torch.register()
    dist.init_process_group("braid")
    rank, size = dist.get_rank(), dist.get_world_size()
    done = []
    for part in (point_to_point, mesh, distributed_tensor):
        part(rank, size)
        done.append(part.__name__)
    report(done=done)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
