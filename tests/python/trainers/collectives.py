# SPDX-License-Identifier: Apache-2.0
"""Every collective, type and reduction through braid and through gloo, in one process, compared."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from report import report

import braid.torch

BRAID_DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16,
    torch.int32, torch.int64, torch.uint8,
)  # fmt: skip
OTHER_DTYPES = (torch.int8, torch.int16, torch.bool, torch.complex64, torch.complex128)
OPS = (dist.ReduceOp.SUM, dist.ReduceOp.MIN, dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT)
SIZES = (1, 7, 4096, 100_003)
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 1e-5, torch.float64: 1e-12}


def data(dtype: torch.dtype, size: int, rank: int, salt: int = 0) -> torch.Tensor:
    """Different on each rank, small enough that integers do not overflow in a product of four."""
    generator = torch.Generator().manual_seed(1000 * rank + salt)
    if dtype is torch.bool:
        return torch.randint(0, 2, (size,), generator=generator).bool()
    if dtype.is_floating_point:
        return (torch.rand(size, generator=generator, dtype=torch.float64) + 0.5).to(dtype)
    if dtype.is_complex:
        return torch.randn(size, generator=generator, dtype=torch.complex128).to(dtype)
    return torch.randint(0, 4, (size,), generator=generator).to(dtype)


def reduced(dtype: torch.dtype, op: dist.ReduceOp, tensors: list[torch.Tensor]) -> torch.Tensor:
    """What a reduction must give, in the widest type that holds it."""
    wide = torch.stack(tensors).to(
        torch.float64 if dtype.is_floating_point
        else torch.complex128 if dtype.is_complex else torch.int64
    )  # fmt: skip
    if op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
        result = wide.sum(0)
        if op == dist.ReduceOp.AVG:
            result = result / len(tensors) if wide.is_floating_point() else result // len(tensors)
    elif op == dist.ReduceOp.MIN:
        result = wide.amin(0)
    elif op == dist.ReduceOp.MAX:
        result = wide.amax(0)
    else:
        result = wide.prod(0)
    return result.to(dtype)


def same(ours: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    assert ours.dtype == expected.dtype and ours.shape == expected.shape, what
    if ours.dtype in TOLERANCE:
        tolerance = TOLERANCE[ours.dtype]
        torch.testing.assert_close(ours, expected, rtol=tolerance, atol=tolerance, msg=what)
    elif ours.dtype.is_complex:
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5, msg=what)
    else:
        assert torch.equal(ours, expected), what


def reductions() -> Iterator[tuple[torch.dtype, dist.ReduceOp]]:
    for dtype in BRAID_DTYPES:
        for op in (*OPS, dist.ReduceOp.AVG):
            yield dtype, op
    for dtype in (torch.int8,):
        for op in OPS:
            yield dtype, op
    for dtype in (torch.complex64, torch.complex128):
        yield dtype, dist.ReduceOp.SUM
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.MIN, dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT):
        yield torch.bool, op


class Comparison:
    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.gloo = dist.new_group(backend="gloo")
        self.count = 0

    def check(self, ours: torch.Tensor, expected: torch.Tensor, what: str) -> None:
        same(ours, expected, what)
        self.count += 1

    def inputs(self, dtype: torch.dtype, size: int, salt: int = 0) -> list[torch.Tensor]:
        return [data(dtype, size, rank, salt) for rank in range(self.size)]

    def all_reduces(self) -> None:
        for dtype, op in reductions():
            for size in SIZES:
                inputs = self.inputs(dtype, size)
                ours = inputs[self.rank].clone()
                dist.all_reduce(ours, op)
                self.check(ours, reduced(dtype, op, inputs), f"all_reduce {dtype} {op} {size}")
                if op == dist.ReduceOp.AVG or dtype is torch.bool:
                    continue  # gloo has neither
                theirs = inputs[self.rank].clone()
                dist.all_reduce(theirs, op, group=self.gloo)
                self.check(ours, theirs, f"all_reduce {dtype} {op} {size} against gloo")

    def broadcasts(self) -> None:
        for dtype in BRAID_DTYPES + OTHER_DTYPES:
            for root in range(self.size):
                inputs = self.inputs(dtype, 4097, root)
                ours = inputs[self.rank].clone()
                dist.broadcast(ours, root)
                self.check(ours, inputs[root], f"broadcast {dtype} from {root}")

    def all_gathers(self) -> None:
        for dtype in BRAID_DTYPES + OTHER_DTYPES:
            for size in SIZES:
                inputs = self.inputs(dtype, size)
                ours = [torch.zeros(size, dtype=dtype) for _ in inputs]
                dist.all_gather(ours, inputs[self.rank])
                for rank, expected in enumerate(inputs):
                    self.check(ours[rank], expected, f"all_gather {dtype} {size} of {rank}")
                whole = torch.zeros(size * self.size, dtype=dtype)
                dist.all_gather_into_tensor(whole, inputs[self.rank])
                self.check(whole, torch.cat(inputs), f"all_gather_into_tensor {dtype} {size}")
        uneven = [data(torch.float32, 10 + rank, rank) for rank in range(self.size)]
        ours = [torch.zeros_like(block) for block in uneven]
        dist.all_gather(ours, uneven[self.rank])
        for rank, expected in enumerate(uneven):
            self.check(ours[rank], expected, f"uneven all_gather of {rank}")

    def reduce_scatters(self) -> None:
        for dtype, op in reductions():
            if dtype.is_complex:
                continue  # torch has no public reduce_scatter of complex tensors on all versions
            for size in SIZES[:3]:
                inputs = self.inputs(dtype, size * self.size)
                whole = reduced(dtype, op, inputs)
                expected = whole[self.rank * size : (self.rank + 1) * size]
                ours = torch.zeros(size, dtype=dtype)
                dist.reduce_scatter(ours, list(inputs[self.rank].chunk(self.size)), op)
                self.check(ours, expected, f"reduce_scatter {dtype} {op} {size}")
                ours = torch.zeros(size, dtype=dtype)
                dist.reduce_scatter_tensor(ours, inputs[self.rank], op)
                self.check(ours, expected, f"reduce_scatter_tensor {dtype} {op} {size}")

    def uneven_reduce_scatters(self) -> None:
        """Blocks of random sizes; against gloo's where that has reduce_scatter."""
        generator = torch.Generator().manual_seed(7)
        gloo = self.gloo if hasattr(dist.ProcessGroup, "set_timeout") else None
        for case in range(20):
            largest = (3, 40, 20_000)[case % 3]
            sizes = torch.randint(0, largest, (self.size,), generator=generator).tolist()
            if case % 2:
                sizes[case % self.size] = 4 * largest  # Most of it is one rank's.
            for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.int8):
                inputs = self.inputs(dtype, sum(sizes), case)
                ours = torch.zeros(sizes[self.rank], dtype=dtype)
                dist.reduce_scatter(ours, list(inputs[self.rank].split(sizes)))
                whole = reduced(dtype, dist.ReduceOp.SUM, inputs)
                what = f"reduce_scatter of blocks of {sizes} {dtype}"
                self.check(ours, whole.split(sizes)[self.rank], what)
                if gloo is not None and dtype == torch.float32 and min(sizes) > 0:
                    theirs = torch.zeros(sizes[self.rank])
                    dist.reduce_scatter(theirs, list(inputs[self.rank].split(sizes)), group=gloo)
                    self.check(ours, theirs, f"{what} against gloo")

    def coalesced(self) -> None:
        sizes = (3, 5000, 17)
        blocks = [self.inputs(torch.float32, size, size) for size in sizes]
        tensors = [block[self.rank].clone() for block in blocks]
        with dist.distributed_c10d._coalescing_manager():
            for tensor in tensors:
                dist.all_reduce(tensor)
        for ours, block in zip(tensors, blocks):
            self.check(ours, reduced(torch.float32, dist.ReduceOp.SUM, block), "coalescing manager")
        outputs = [torch.zeros(size * self.size) for size in sizes]
        with dist.distributed_c10d._coalescing_manager():
            for output, block in zip(outputs, blocks):
                dist.all_gather_into_tensor(output, block[self.rank])
        for output, block in zip(outputs, blocks):
            self.check(output, torch.cat(block), "coalesced all_gather_into_tensor")

    def lists(self) -> None:
        """Forms that take lists of lists: whose order they are in is what can be taken wrong."""
        sizes = (3, 5000, 17)
        inputs = [self.inputs(torch.float32, size, size) for size in sizes]  # [tensor][rank]
        mine = [block[self.rank] for block in inputs]
        gathered = {}
        for group in (None, self.gloo):
            outputs = [[torch.zeros(size) for size in sizes] for _ in range(self.size)]
            dist.all_gather_coalesced(outputs, mine, group=group)
            gathered[group] = outputs
        for rank in range(self.size):
            for index in range(len(sizes)):
                what = f"all_gather_coalesced, tensor {index} of rank {rank}"
                ours, theirs = (gathered[group][rank][index] for group in (None, self.gloo))
                self.check(ours, inputs[index][rank], what)
                self.check(ours, theirs, f"{what} against gloo")
        wholes = [self.inputs(torch.float32, size * self.size, size) for size in sizes]
        self.functional_lists(wholes)
        outputs = [torch.zeros(size) for size in sizes]
        with dist.distributed_c10d._coalescing_manager():
            for output, whole in zip(outputs, wholes):
                dist.reduce_scatter_tensor(output, whole[self.rank])
        for output, whole, size in zip(outputs, wholes, sizes):
            total = reduced(torch.float32, dist.ReduceOp.SUM, whole)
            self.check(output, total.view(self.size, size)[self.rank], "coalesced reduce_scatter")
        # DDP and FSDP call the group itself: [tensor][rank] here, on both sides.
        group = dist.distributed_c10d._get_default_group()
        outputs = [[torch.zeros(7) for _ in range(self.size)] for _ in range(2)]
        mine = [data(torch.float32, 7, self.rank, salt) for salt in (1, 2)]
        group.allgather(outputs, mine).wait()
        for index, salt in enumerate((1, 2)):
            for rank in range(self.size):
                expected = data(torch.float32, 7, rank, salt)
                self.check(outputs[index][rank], expected, f"all_gather {index} of {rank}")
        outputs = [torch.zeros(7) for _ in range(2)]
        blocks = [self.inputs(torch.float32, 7 * self.size, salt) for salt in (3, 4)]
        group.reduce_scatter(
            outputs, [list(block[self.rank].chunk(self.size)) for block in blocks]
        ).wait()
        for output, block in zip(outputs, blocks):
            total = reduced(torch.float32, dist.ReduceOp.SUM, block)
            self.check(output, total.view(self.size, 7)[self.rank], "reduce_scatter of lists")

    def functional_lists(self, wholes: list[list[torch.Tensor]]) -> None:
        """What functional collectives make of lists, compared with the same over gloo."""
        mine = [whole[self.rank] for whole in wholes]
        results = {}
        for name in (None, self.gloo):
            group = name or dist.group.WORLD
            results[name] = [
                *functional.all_gather_into_tensor_coalesced(mine, group),
                *functional.all_reduce_coalesced(mine, "sum", group),
            ]
        for ours, theirs in zip(results[None], results[self.gloo]):
            self.check(functional.wait_tensor(ours), functional.wait_tensor(theirs), "functional")
        for tensor, whole in zip(results[None], wholes):
            self.check(functional.wait_tensor(tensor), torch.cat(whole), "functional all_gather")
        scattered = functional.reduce_scatter_tensor_coalesced(
            mine, "sum", [0] * len(mine), dist.group.WORLD
        )
        for tensor, whole in zip(scattered, wholes):
            total = reduced(torch.float32, dist.ReduceOp.SUM, whole).view(self.size, -1)[self.rank]
            self.check(functional.wait_tensor(tensor), total, "functional reduce_scatter")

    def layouts(self) -> None:
        inputs = [data(torch.float32, 600, rank).view(20, 30) for rank in range(self.size)]
        expected = reduced(torch.float32, dist.ReduceOp.SUM, inputs)
        ours = torch.zeros(30, 20).t()
        ours.copy_(inputs[self.rank])
        assert not ours.is_contiguous()
        dist.all_reduce(ours)
        self.check(ours, expected, "all_reduce of a transposed tensor")
        ours = torch.zeros(20, 60)[:, ::2]
        ours.copy_(inputs[self.rank])
        dist.broadcast(ours, 0)
        self.check(ours, inputs[0], "broadcast of a strided tensor")
        parameter = torch.nn.Parameter(inputs[self.rank].clone())
        version = parameter._version
        dist.broadcast(parameter, 1)
        self.check(parameter.detach(), inputs[1], "broadcast of a parameter")
        assert parameter._version == version, "autograd must not see a collective"
        empty = torch.zeros(0)
        dist.all_reduce(empty)

    def asynchronous(self) -> None:
        inputs = [self.inputs(torch.float32, 1000 + i, i) for i in range(50)]
        tensors = [block[self.rank].clone() for block in inputs]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        for work in reversed(works):
            assert work.wait()
        for ours, block, work in zip(tensors, inputs, works):
            self.check(ours, reduced(torch.float32, dist.ReduceOp.SUM, block), "async all_reduce")
            assert work.is_completed() and work.is_success()
            assert work.get_future().wait()[0] is ours
        seen = []
        work = dist.all_reduce(tensors[0], async_op=True)
        work.get_future().then(lambda future: seen.append(future.value()[0])).wait()
        assert seen and seen[0] is tensors[0]
        dist.barrier()
        dist.barrier(async_op=True).wait()

    def not_carried(self) -> None:
        sparse = torch.sparse_coo_tensor([[self.rank, 5]], [1.0, 2.0], (6,))
        dist.all_reduce(sparse)
        expected = torch.zeros(6)
        expected[: self.size] = 1.0
        expected[5] += 2.0 * self.size
        self.check(sparse.to_dense(), expected, "all_reduce of a sparse tensor")


def main() -> None:
    braid.torch.register()
    dist.init_process_group("braid")
    comparison = Comparison()
    comparison.all_reduces()
    comparison.broadcasts()
    comparison.all_gathers()
    comparison.reduce_scatters()
    comparison.uneven_reduce_scatters()
    comparison.coalesced()
    comparison.lists()
    comparison.layouts()
    comparison.asynchronous()
    comparison.not_carried()
    report(compared=comparison.count)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
