# SPDX-License-Identifier: Apache-2.0
"""Every collective that is cut, with sizes around where that begins: what comes is what an uncut one gives."""

from __future__ import annotations

import torch
import torch.distributed as dist
from report import digest, report

import braid.torch
from braid.torch.operations.pieces import PIECE_BYTES

FLOATS = PIECE_BYTES // 4
# Elements of all blocks of a rank together.
COUNTS = (FLOATS, FLOATS + 4, 2 * FLOATS, 2 * FLOATS + 68, 5_000_004)


def numbers(count: int, seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Whole ones, of which sums are exact in float32; for bfloat16 small enough."""
    return (torch.arange(count, dtype=torch.int32) * 7 + seed * 13).remainder_(31).to(dtype)


class Pieces:
    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.compared = 0

    def check(self, ours: torch.Tensor, expected: torch.Tensor, what: str) -> None:
        assert ours.dtype == expected.dtype and torch.equal(ours, expected), what
        self.compared += 1

    def total(self, count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return sum(numbers(count, rank, dtype) for rank in range(self.size))

    def reduced(self, count: int) -> None:
        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            ours = numbers(count, self.rank, dtype)
            dist.all_reduce(ours)
            self.check(ours, self.total(count, dtype), f"all-reduce of {count} {dtype}")
        part = torch.zeros(count // self.size)
        dist.reduce_scatter_tensor(part, numbers(count, self.rank))
        expected = self.total(count).chunk(self.size)[self.rank]
        self.check(part, expected, f"reduce-scatter of {count}")
        part.zero_()
        blocks = [block.clone() for block in numbers(count, self.rank).chunk(self.size)]
        dist.reduce_scatter(part, blocks, op=dist.ReduceOp.SUM)
        self.check(part, expected, f"reduce-scatter of lists of {count}")

    def spread(self, count: int) -> None:
        for root in range(0, self.size, self.size - 1):
            ours = numbers(count, self.rank)
            dist.broadcast(ours, root)
            self.check(ours, numbers(count, root), f"broadcast of {count} from {root}")

    def gathered(self, count: int) -> None:
        each = count // self.size
        expected = [numbers(each, rank) for rank in range(self.size)]
        whole = torch.zeros(each * self.size)
        dist.all_gather_into_tensor(whole, expected[self.rank])
        self.check(whole, torch.cat(expected), f"all-gather of {count}")
        blocks = [torch.zeros(each) for _ in expected]
        dist.all_gather(blocks, expected[self.rank])
        self.check(torch.cat(blocks), torch.cat(expected), f"all-gather of lists of {count}")
        root = self.size - 1
        mine = self.rank == root
        # Every second element of something: a result that is not contiguous.
        blocks = [torch.zeros(2 * each)[::2] for _ in expected] if mine else None
        dist.gather(expected[self.rank], blocks, dst=root)
        if blocks is not None:
            self.check(torch.cat(blocks), torch.cat(expected), f"gather of {count}")
        ours = torch.zeros(each)
        dist.scatter(ours, expected if mine else None, src=root)
        self.check(ours, expected[self.rank], f"scatter of {count}")

    def at_once(self) -> None:
        """Several under way, small ones among them, and waited for in another order."""
        large, small, other = numbers(5_000_004, self.rank), torch.ones(10), numbers(3 * FLOATS, self.rank)
        turned = numbers(4_000_000, self.rank).view(2000, 2000).t()
        works = [
            dist.all_reduce(large, async_op=True),
            dist.all_reduce(small, async_op=True),
            dist.broadcast(other, 0, async_op=True),
            dist.all_reduce(turned, async_op=True),
        ]
        futures = [work.get_future() for work in works]
        for work in reversed(works):
            work.wait()
        for future, work in zip(futures, works):
            assert all(value is given for value, given in zip(future.wait(), work.result(), strict=True))
        self.check(large, self.total(5_000_004), "an all-reduce beside others")
        self.check(small, torch.full((10,), float(self.size)), "a small one beside others")
        self.check(other, numbers(3 * FLOATS, 0), "a broadcast beside others")
        self.check(turned, self.total(4_000_000).view(2000, 2000).t(), "a transposed one beside others")


def same_bits() -> list[str]:
    """Sums that are rounded, twice."""
    generator = torch.Generator().manual_seed(dist.get_rank())
    given = torch.randn(5_000_004, generator=generator)
    digests = []
    for _ in range(2):
        ours = given.clone()
        dist.all_reduce(ours)
        digests.append(digest([ours]))
    return digests


def main() -> None:
    braid.torch.register()
    dist.init_process_group("braid")
    engine = dist.distributed_c10d._get_default_group().engine
    pieces = Pieces()
    started = []
    submit = engine.job.submit_raw
    engine.job.submit_raw = lambda *arguments: started.append(arguments[7]) or submit(*arguments)
    for count in COUNTS:
        pieces.reduced(count)
        pieces.spread(count)
        pieces.gathered(count)
    pieces.at_once()
    report(
        compared=pieces.compared,
        operations=engine.sequence,
        submitted=len(started),
        largest=max(started),
        digests=same_bits(),
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
