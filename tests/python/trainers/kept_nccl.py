# SPDX-License-Identifier: Apache-2.0
"""An enabled script that asks for NCCL reports what torch makes its groups of: `kept_nccl.py [BACKEND]`.

NCCL cannot run without a GPU: gloo stands in for it, unseen by braid, which is told that there is a GPU.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from report import Heard, report
from torch.distributed import distributed_c10d
from torch.distributed.device_mesh import init_device_mesh

import braid.torch
from braid.torch.operations import devices

HAS_OVERRIDES = "backend_override" in inspect.signature(init_device_mesh).parameters


class CudaThere(devices.Cuda):
    def is_there(self) -> bool:
        return True


def record(made: list[str]) -> None:
    """The backend of each group that this rank is in, as torch is told to make it."""
    original = distributed_c10d._new_process_group_helper

    def helper(size: Any, rank: Any, ranks: Any, backend: Any, *rest: Any, **options: Any) -> Any:
        got = original(size, rank, ranks, "gloo" if "nccl" in str(backend) else backend, *rest, **options)
        if got[0] is not dist.GroupMember.NON_GROUP_MEMBER:
            made.append(str(backend))
        return got

    distributed_c10d._new_process_group_helper = helper


def pair(first: int) -> list[int]:
    return [first, first + 1]


def each_pair(**options: Any) -> Any:
    """Two groups of two neighbours; this rank's."""
    groups = [dist.new_group(pair(first), **options) for first in range(0, dist.get_world_size(), 2)]
    return groups[dist.get_rank() // 2]


def across(**options: Any) -> Any:
    """Groups of ranks that are not on one node, if there is more than one."""
    half = dist.get_world_size() // 2
    groups = [dist.new_group([first, first + half], **options) for first in range(half)]
    return groups[dist.get_rank() % half]


def split() -> Any:
    return dist.split_group(split_ranks=[pair(first) for first in range(0, dist.get_world_size(), 2)])


def ways() -> Iterator[tuple[str, Callable[[], Any]]]:
    size = dist.get_world_size()
    yield "as the default group", each_pair
    yield "nccl", lambda: each_pair(backend="nccl")
    yield "both", lambda: each_pair(backend="cpu:gloo,cuda:nccl")
    yield "gloo", lambda: each_pair(backend="gloo")
    yield "braid", lambda: each_pair(backend="braid")
    yield "subgroups", lambda: dist.new_subgroups(2, backend="nccl")[0]
    yield "across", lambda: across(backend="nccl")
    yield "all", lambda: dist.new_group(backend="nccl")
    if isinstance(dist.group.WORLD, braid.torch.BraidProcessGroup):  # torch splits groups of NCCL itself.
        yield "split", split
    if size > 2:
        mesh = lambda **options: init_device_mesh(  # noqa: E731
            "cpu", (size // 2, 2), mesh_dim_names=("replicate", "shard"), **options
        )
        yield "mesh", lambda: mesh()["shard"].get_group()
        if HAS_OVERRIDES:
            overrides = {"replicate": "braid", "shard": "nccl"}
            yield "overridden", lambda: mesh(backend_override=dict(overrides))["shard"].get_group()


def main() -> None:
    made: list[str] = []
    record(made)
    devices.cuda = CudaThere()
    braid.torch.enable()
    logging.getLogger("braid").setLevel(logging.INFO)
    heard = Heard(logging.INFO)
    dist.init_process_group(*sys.argv[1:])
    got: dict[str, Any] = {"default": list(made)}
    for name, make in ways():
        made.clear()
        group = make()
        got[name] = list(made)
        total = torch.ones(3)
        dist.all_reduce(total, group=group)
        assert total.tolist() == [float(dist.get_world_size(group))] * 3, name
    told = [text for text in heard.texts if "keeps NCCL" in text]
    report(got=got, told=told)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
