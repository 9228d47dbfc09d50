# SPDX-License-Identifier: Apache-2.0
"""Gather, scatter and all-to-all in every form that torch has, and errors before anything is sent."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from collectives import BRAID_DTYPES, OTHER_DTYPES, data
from report import report

import braid.torch


class Exchanges:
    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.compared = 0

    def check(self, ours: torch.Tensor, expected: torch.Tensor, what: str) -> None:
        assert ours.dtype == expected.dtype and torch.equal(ours, expected), what
        self.compared += 1

    def gathers(self) -> None:
        for dtype in (*BRAID_DTYPES, *OTHER_DTYPES):
            for root, count in enumerate((0, 1, 1000, 50_001)):
                root %= self.size
                inputs = [data(dtype, count, rank) for rank in range(self.size)]
                mine = self.rank == root
                blocks = [torch.zeros(count, dtype=dtype) for _ in inputs] if mine else None
                dist.gather(inputs[self.rank], blocks, dst=root)
                for rank, block in enumerate(blocks or []):
                    self.check(block, inputs[rank], f"gather of {count} {dtype} from {rank}")
                ours = torch.zeros(count, dtype=dtype)
                dist.scatter(ours, inputs if mine else None, src=root)
                self.check(ours, inputs[self.rank], f"scatter of {count} {dtype} from {root}")
        # A view of every second element, and a result that is one.
        wide = data(torch.float32, 20, self.rank)
        blocks = [torch.zeros(20)[::2] for _ in range(self.size)] if self.rank == 0 else None
        work = dist.gather(wide[::2], blocks, dst=0, async_op=True)
        work.wait()
        for rank, block in enumerate(blocks or []):
            self.check(block, data(torch.float32, 20, rank)[::2], f"strided gather from {rank}")

    def all_to_alls(self) -> None:
        for dtype in (*BRAID_DTYPES, *OTHER_DTYPES):
            for rows in (0, 1, 64, 5003):
                # From one rank to another: more for higher numbers, nothing for some.
                sizes = [[rows * ((r + to) % 3) for to in range(self.size)]
                         for r in range(self.size)]  # fmt: skip
                given = [data(dtype, 3 * sum(row), r).view(-1, 3) for r, row in enumerate(sizes)]
                theirs = [one.split(row)[self.rank] for one, row in zip(given, sizes)]
                expected = torch.cat(theirs)
                ours = torch.zeros_like(expected)
                column = [row[self.rank] for row in sizes]
                work = dist.all_to_all_single(
                    ours, given[self.rank], column, sizes[self.rank], async_op=True
                )
                work.wait()
                self.check(ours, expected, f"uneven all_to_all_single of {rows} rows {dtype}")
                blocks = [torch.zeros_like(one) for one in theirs]
                dist.all_to_all(blocks, list(given[self.rank].split(sizes[self.rank])))
                self.check(torch.cat(blocks), expected, f"uneven all_to_all of {rows} {dtype}")
                given = [data(dtype, rows * self.size, rank) for rank in range(self.size)]
                ours = torch.zeros_like(given[self.rank])
                dist.all_to_all_single(ours, given[self.rank])
                own = slice(rows * self.rank, rows * (self.rank + 1))
                even = torch.cat([one[own] for one in given])
                self.check(ours, even, f"all_to_all_single of {rows} {dtype}")
        # Some ranks say sizes that are equal, others say none: the same operation.
        mine = data(torch.float32, 2 * self.size, self.rank)
        splits = [2] * self.size if self.rank % 2 else None
        ours = torch.zeros_like(mine)
        dist.all_to_all_single(ours, mine, splits, splits)
        everyone = [data(torch.float32, 2 * self.size, rank) for rank in range(self.size)]
        expected = torch.cat([one.chunk(self.size)[self.rank] for one in everyone])
        self.check(ours, expected, "all_to_all_single with and without splits")
        # Into the memory that it comes from, and into every second element.
        ours = mine.clone()
        dist.all_to_all_single(ours, ours)
        self.check(ours, expected, "all_to_all_single in place")
        ours = torch.zeros(4 * self.size)[::2]
        dist.all_to_all_single(ours, mine)
        self.check(ours, expected, "all_to_all_single into a strided tensor")
        group = dist.distributed_c10d._get_default_group()
        ours = functional.all_to_all_single(mine, None, None, group)
        self.check(ours + 0, expected, "functional all_to_all_single")

    def refused(self) -> None:
        """Before anything was sent, so the group goes on."""
        ones = torch.ones(2 * self.size + 1)
        for splits in (None, [1] * self.size, [3] * (self.size - 1)):
            try:
                dist.all_to_all_single(torch.zeros_like(ones), ones, splits, splits)
            except ValueError as error:
                assert "all-to-all" in str(error), error
            else:
                raise AssertionError(f"{splits} were taken")
        if self.rank == 0:
            try:
                dist.gather(ones, [torch.zeros(5)] * self.size, dst=0)
            except ValueError as error:
                assert "is the root and needs outputs" in str(error), error
            else:
                raise AssertionError("outputs of another size were taken")
        dist.all_reduce(ones)
        assert ones[0].item() == self.size


def main() -> None:
    braid.torch.register()
    dist.init_process_group("braid")
    exchanges = Exchanges()
    exchanges.gathers()
    exchanges.all_to_alls()
    exchanges.refused()
    inner = dist.distributed_c10d._get_default_group()._inner
    report(compared=exchanges.compared, gloo=inner.was_used)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
