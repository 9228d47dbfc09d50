# SPDX-License-Identifier: Apache-2.0
"""Sends and receives in all forms that torch has, around a ring of ranks."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from report import report

import braid.torch

TYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.uint8, torch.bool, torch.complex64,
]  # fmt: skip
SIZES = (0, 1, 1000, 300_000)


def made(rank: int, size: int, dtype: torch.dtype) -> torch.Tensor:
    return (torch.arange(size) % 100 + rank).to(dtype)


class Ring:
    def __init__(self) -> None:
        self.rank, size = dist.get_rank(), dist.get_world_size()
        self.after, self.before = (self.rank + 1) % size, (self.rank - 1) % size
        self.wrong: list[str] = []
        self.arrived = 0

    def note(self, what: str, got: torch.Tensor, expected: torch.Tensor) -> None:
        self.arrived += 1
        if not torch.equal(got, expected):
            self.wrong.append(what)


def by_type_and_size(ring: Ring) -> None:
    for dtype in TYPES:
        for size in SIZES:
            got = torch.zeros(size, dtype=dtype)
            works = [
                dist.isend(made(ring.rank, size, dtype), ring.after, tag=size),
                dist.irecv(got, ring.before, tag=size),
            ]
            for work in works:
                work.wait()
            ring.note(f"{dtype} {size}", got, made(ring.before, size, dtype))


def apart(ring: Ring) -> None:
    """Neither end is contiguous."""
    got = torch.zeros(50, 40).t()
    work = dist.irecv(got, ring.before)
    dist.send(made(ring.rank, 2000, torch.float32).view(50, 40).t(), ring.after)
    work.wait()
    ring.note("apart", got, made(ring.before, 2000, torch.float32).view(50, 40).t())


def in_a_batch(ring: Ring) -> None:
    got = [torch.zeros(100 + n) for n in range(5)]
    operations = [dist.P2POp(dist.irecv, one, ring.before) for one in got]
    for n in range(5):
        operations.append(dist.P2POp(dist.isend, made(ring.rank + n, 100 + n, torch.float32), ring.after))
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    for n, one in enumerate(got):
        ring.note(f"batch {n}", one, made(ring.before + n, 100 + n, torch.float32))


def not_waited_for(ring: Ring) -> None:
    """What nobody waits for arrives all the same, and so does what is overtaken."""
    got = [torch.zeros(10) for _ in range(4)]
    works = [dist.irecv(one, ring.before, tag=n) for n, one in enumerate(got)]
    for n in (2, 0, 3, 1):
        dist.isend(made(n, 10, torch.float32), ring.after, tag=n)
    while not all(work.is_completed() for work in works):
        pass
    for n, one in enumerate(got):
        ring.note(f"not waited for {n}", one, made(n, 10, torch.float32))


def futures(ring: Ring) -> None:
    got = torch.zeros(10)
    future = dist.irecv(got, ring.before).get_future()
    dist.isend(made(ring.rank, 10, torch.float32), ring.after).get_future().wait()
    ring.note("future", future.wait()[0], made(ring.before, 10, torch.float32))


def from_any(ring: Ring) -> None:
    size = dist.get_world_size()
    for tag, sent in enumerate((1, 200_000), 3):
        if ring.rank != 0:
            dist.send(made(ring.rank, sent, torch.float32), 0, tag=tag)
            continue
        sources = set()
        for _ in range(size - 1):
            got = torch.zeros(sent)
            source = dist.recv(got, tag=tag)
            ring.note(f"from any: {source}", got, made(source, sent, torch.float32))
            sources.add(source)
        if sources != set(range(1, size)):
            ring.wrong.append(f"sources {sources}")


def objects(ring: Ring) -> None:
    if ring.rank == 0:
        dist.send_object_list([{"a": 1}, "b"], 1)
    elif ring.rank == 1:
        got: list[Any] = [None, None]
        dist.recv_object_list(got, 0)
        if got != [{"a": 1}, "b"]:
            ring.wrong.append(f"objects {got}")


def main() -> None:
    braid.torch.register()
    dist.init_process_group("braid")
    ring = Ring()
    for case in (by_type_and_size, apart, in_a_batch, not_waited_for, futures, from_any, objects):
        case(ring)
    group = dist.group.WORLD
    report(wrong=ring.wrong, arrived=ring.arrived, gloo=group._inner.was_used)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
