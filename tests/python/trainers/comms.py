# SPDX-License-Identifier: Apache-2.0
"""Every collective of a communicator of torchcomms' over braid: `comms.py` with the ranks alone, `comms.py c10d` as a
script of torch.distributed whose groups torch makes of such communicators."""

from __future__ import annotations

import os
import sys
from copy import copy
from datetime import timedelta

import torch
import torch.distributed as dist
import torchcomms
from report import report
from torch.nn.parallel import DistributedDataParallel
from torchcomms import ReduceOp

from braid.torch.comms import BraidComm

COUNT = 1000


def of(rank: int, count: int = COUNT) -> torch.Tensor:
    return torch.arange(count, dtype=torch.float32) + 100 * rank


class Calls:
    """Each method calls one collective and says whether the result is right on this rank."""

    def __init__(self, comm: torchcomms.TorchComm, async_op: bool) -> None:
        self.comm = comm
        self.async_op = async_op
        self.rank = comm.get_rank()
        self.size = comm.get_size()
        self.all = [of(rank) for rank in range(self.size)]
        self.total = sum(self.all)

    def call(self, method: str, *arguments: object) -> None:
        work = getattr(self.comm, method)(*arguments, async_op=self.async_op)
        work.wait()
        assert work.is_completed()

    def all_reduce(self) -> bool:
        right = []
        for op, expected in (
            (ReduceOp.SUM, self.total), (ReduceOp.AVG, self.total / self.size),
            (ReduceOp.MIN, self.all[0]), (ReduceOp.MAX, self.all[-1]),
        ):  # fmt: skip
            tensor = of(self.rank)
            self.call("all_reduce", tensor, op)
            right.append(torch.allclose(tensor, expected))
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8):
            for factor in (2.0, torch.full((1,), 2, dtype=dtype)):
                small = torch.tensor([self.rank + 1, 3], dtype=dtype)
                self.call("all_reduce", small, ReduceOp.PREMUL_SUM(factor))
                right.append(small.tolist() == [self.size * (self.size + 1), 6 * self.size])
        bits = torch.tensor([1 << self.rank])
        self.call("all_reduce", bits, ReduceOp.BOR)
        return all(right) and bits.item() == (1 << self.size) - 1

    def reduce(self) -> bool:
        tensor = of(self.rank)
        self.call("reduce", tensor, 1, ReduceOp.SUM)
        multiplied = of(self.rank)
        self.call("reduce", multiplied, 1, ReduceOp.PREMUL_SUM(0.5))
        return torch.equal(tensor, self.total if self.rank == 1 else of(self.rank)) and torch.equal(
            multiplied, 0.5 * self.total if self.rank == 1 else of(self.rank)
        )

    def broadcast(self) -> bool:
        tensor = of(self.rank)
        self.call("broadcast", tensor, 1)
        return torch.equal(tensor, of(1))

    def all_gather(self) -> bool:
        outputs = [torch.zeros(COUNT) for _ in self.all]
        self.call("all_gather", outputs, of(self.rank))
        return all(map(torch.equal, outputs, self.all))

    def all_gather_v(self) -> bool:
        outputs = [torch.zeros(rank + 1) for rank in range(self.size)]
        self.call("all_gather_v", outputs, of(self.rank, self.rank + 1))
        return all(torch.equal(o, of(rank, rank + 1)) for rank, o in enumerate(outputs))

    def all_gather_single(self) -> bool:
        output = torch.zeros(COUNT * self.size)
        self.call("all_gather_single", output, of(self.rank))
        return torch.equal(output, torch.cat(self.all))

    def reduce_scatter(self) -> bool:
        output = torch.zeros(COUNT)
        self.call("reduce_scatter", output, [of(self.rank) + to for to in range(self.size)], ReduceOp.SUM)
        multiplied, given = torch.zeros(COUNT), [of(self.rank) for _ in self.all]
        self.call("reduce_scatter", multiplied, given, ReduceOp.PREMUL_SUM(0.5))
        return torch.equal(output, self.total + self.size * self.rank) and torch.equal(
            torch.stack([multiplied, given[0]]), torch.stack([0.5 * self.total, of(self.rank)])
        )

    def reduce_scatter_v(self) -> bool:
        output = torch.zeros(self.rank + 1)
        self.call(
            "reduce_scatter_v", output, [of(self.rank, to + 1) for to in range(self.size)], ReduceOp.SUM
        )
        right = torch.equal(output, self.total[: self.rank + 1])
        given = [of(self.rank, to + 1) for to in range(self.size)]
        self.call("reduce_scatter_v", output, given, ReduceOp.PREMUL_SUM(0.5))
        return right and torch.equal(output, 0.5 * self.total[: self.rank + 1])

    def reduce_scatter_single(self) -> bool:
        output = torch.zeros(COUNT)
        self.call("reduce_scatter_single", output, of(self.rank).repeat(self.size), ReduceOp.SUM)
        right = torch.equal(output, self.total)
        given = of(self.rank).repeat(self.size)
        self.call("reduce_scatter_single", output, given, ReduceOp.PREMUL_SUM(0.5))
        return right and torch.equal(output, 0.5 * self.total)

    def all_to_all(self) -> bool:
        outputs = [torch.zeros(COUNT) for _ in self.all]
        self.call("all_to_all", outputs, [of(self.rank) * to for to in range(self.size)])
        return all(torch.equal(o, of(rank) * self.rank) for rank, o in enumerate(outputs))

    def all_to_all_single(self) -> bool:
        output = torch.zeros(self.size)
        self.call("all_to_all_single", output, torch.arange(self.size) + 10.0 * self.rank)
        return output.tolist() == [10.0 * rank + self.rank for rank in range(self.size)]

    def all_to_all_v_single(self) -> bool:
        """Each rank gives rank r its own number r + 1 times."""
        to = [rank + 1 for rank in range(self.size)]
        output = torch.zeros((self.rank + 1) * self.size)
        given = torch.full((sum(to),), float(self.rank))
        self.call("all_to_all_v_single", output, given, [self.rank + 1] * self.size, to)
        return output.tolist() == [float(r) for r in range(self.size) for _ in range(self.rank + 1)]

    def scatter(self) -> bool:
        output = torch.zeros(COUNT)
        self.call("scatter", output, self.all if self.rank == 1 else [], 1)
        return torch.equal(output, of(self.rank))

    def gather(self) -> bool:
        outputs = [torch.zeros(COUNT) for _ in self.all] if self.rank == 1 else []
        self.call("gather", outputs, of(self.rank), 1)
        return self.rank != 1 or all(map(torch.equal, outputs, self.all))

    def gather_single(self) -> bool:
        output = torch.zeros(COUNT * self.size if self.rank == 1 else 0)
        self.call("gather_single", output, of(self.rank), 1)
        return self.rank != 1 or torch.equal(output, torch.cat(self.all))

    def barrier(self) -> bool:
        self.call("barrier")
        return True

    def send_and_recv(self) -> bool:
        tensor = torch.zeros(COUNT)
        if self.rank % 2 == 0:
            self.call("send", of(self.rank), self.rank + 1)
            return True
        self.call("recv", tensor, self.rank - 1)
        return torch.equal(tensor, of(self.rank - 1))


COLLECTIVES = [name for name in vars(Calls) if not name.startswith("_") and name != "call"]


def split_sums(comm: torchcomms.TorchComm) -> list[float]:
    """Sums in halves of the ranks, and in a part that the last rank is not in."""
    rank, size = comm.get_rank(), comm.get_size()
    sums = []
    halves = [list(range(size // 2)), list(range(size // 2, size))]
    for ranks in (halves[rank >= size // 2], [] if rank == size - 1 else list(range(size - 1))):
        part = comm.split(ranks, "part")
        if part is None:
            continue
        tensor = torch.tensor([float(rank)])
        part.all_reduce(tensor, ReduceOp.SUM, async_op=False)
        sums.append(tensor.item())
        part.finalize()
    return sums


def refused(comm: torchcomms.TorchComm) -> list[str]:
    """A factor of PREMUL_SUM that nobody knows, more ranks than there are, and a communicator that nobody made."""
    said = []
    for call in (
        lambda: comm.all_reduce(torch.ones(1), copy(ReduceOp.PREMUL_SUM(2.0)), async_op=False),
        lambda: comm.split([comm.get_rank(), 99], "part"),
        lambda: BraidComm().barrier(async_op=False),
    ):
        try:
            call()
        except Exception as error:
            said.append(str(error))
    return said


def late(comm: torchcomms.TorchComm) -> str:
    """What rank 0 hears of a collective that no other rank starts, after set_timeout(). The others wait
    in another communicator."""
    others = torchcomms.new_comm("braid", torch.device("cpu"), name="others")
    said = late_of_rank_0(comm) if comm.get_rank() == 0 else ""
    others.barrier(async_op=False)
    others.finalize()
    return said


def late_of_rank_0(comm: torchcomms.TorchComm) -> str:
    comm.set_timeout(timedelta(seconds=1))
    try:
        comm.all_reduce(torch.ones(1), ReduceOp.SUM, async_op=False)
    except Exception as error:
        return str(error)
    return "no error"


def by_the_scripts_store() -> float:
    """A sum over a communicator, then over a part of it that is made when the script has let go of the store, and over
    one without a store, while another store listens at MASTER_PORT."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=rank == 0, wait_for_workers=False
    )
    comm = torchcomms.new_comm("braid", torch.device("cpu"), name="stored", store=store)
    comm.barrier(async_op=False)
    del store
    comm.barrier(async_op=False)
    part = comm.split(list(range(size)), "part")
    tensor = torch.ones(1)
    comm.all_reduce(tensor, ReduceOp.SUM, async_op=False)
    part.all_reduce(tensor, ReduceOp.SUM, async_op=False)
    beside = torchcomms.new_comm("braid", torch.device("cpu"), name="beside")
    beside.all_reduce(tensor, ReduceOp.SUM, async_op=False)
    for each in (beside, part, comm):
        each.finalize()
    return tensor.item()


def alone() -> None:
    wrong, by_store = [], by_the_scripts_store()
    for number, async_op in enumerate((False, True)):
        comm = torchcomms.new_comm("braid", torch.device("cpu"), name=f"comm{number}")
        calls = Calls(comm, async_op)
        wrong += [name for name in COLLECTIVES if not getattr(calls, name)()]
        if async_op:
            break
        comm.finalize()
    seen = {"sums": split_sums(comm), "refused": refused(comm)}
    comm.barrier(async_op=False)
    report(wrong=wrong, collectives=COLLECTIVES, backend=comm.get_backend(), late=late(comm), by_store=by_store, **seen)
    comm.finalize()


def of_torch() -> None:
    """torch.distributed's own calls, DDP among them, whose groups are communicators of torchcomms'."""
    dist.init_process_group("braid")
    rank, size = dist.get_rank(), dist.get_world_size()
    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    works = []
    tensor = of(rank)
    works.append(dist.all_reduce(tensor, async_op=True))
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank})
    works[0].wait()
    halves = dist.new_subgroups(size // 2)[0]
    half = torch.tensor([float(rank)])
    dist.all_reduce(half, group=halves)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(8, 3))
    model(torch.full((4, 8), float(rank))).sum().backward()
    report(
        wrapper=type(backend).__name__, sum=tensor.tolist() == sum(of(r) for r in range(size)).tolist(),
        objects=[each["rank"] for each in gathered], half=half.item(),
        gradient=model.module.weight.grad[0, 0].item(),
    )  # fmt: skip
    dist.destroy_process_group()


if __name__ == "__main__":
    of_torch() if sys.argv[1:] == ["c10d"] else alone()
