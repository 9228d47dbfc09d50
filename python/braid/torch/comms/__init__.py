# SPDX-License-Identifier: Apache-2.0
"""torchcomms' backend "braid": a communicator is a process group of braid's.

torchcomms loads this module by the entry point group `torchcomms.backends`, and torch does where
`TORCH_DISTRIBUTED_USE_TORCHCOMMS=1` leads process groups through torchcomms. torchcomms calls the
collectives of a backend written in Python; it hands on neither the options of a single operation
nor batches of sends and receives.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import torch
import torchcomms
from torch.distributed import PrefixStore, ReduceOp, Store, Work, distributed_c10d
from torchcomms import RedOpType

from braid.torch.comms.factors import multiplied
from braid.torch.comms.rendezvous import own_place, store_of
from braid.torch.group.creation import create_group
from braid.torch.group.process_group import BraidProcessGroup
from braid.torch.operations.work import CopyBackWork

_NAME = "braid"
_OPS = {
    RedOpType.SUM: ReduceOp.SUM,
    RedOpType.AVG: ReduceOp.AVG,
    RedOpType.MIN: ReduceOp.MIN,
    RedOpType.MAX: ReduceOp.MAX,
    RedOpType.PRODUCT: ReduceOp.PRODUCT,
    RedOpType.BAND: ReduceOp.BAND,
    RedOpType.BOR: ReduceOp.BOR,
    RedOpType.BXOR: ReduceOp.BXOR,
    RedOpType.PREMUL_SUM: ReduceOp.SUM,  # of tensors that are multiplied here
}


class _Options(NamedTuple):
    """What BraidProcessGroup looks at of torch's options."""

    asyncOp: bool
    rootRank: int = 0
    reduceOp: Any = ReduceOp.SUM


class BraidComm(torchcomms.TorchCommBackend):
    """Made by torchcomms without arguments; init() or split() makes it a communicator."""

    def __init__(self) -> None:
        super().__init__()
        self._name = ""
        self._rank = -1
        self._size = 0
        self._ends_in_call = False
        self._splits = 0
        self._made: BraidProcessGroup | None = None

    def init(self, device: torch.device, name: str, options: Any) -> None:
        rank, size = own_place()
        store = store_of(name, rank, size, options)
        self._open(store, rank, size, name, options.timeout, _is_for_distributed())

    def finalize(self) -> None:
        """torchcomms keeps this object for good, so what it holds has to go here."""
        self._group.shutdown()
        self._made = None

    def get_rank(self) -> int:
        return self._rank

    def get_size(self) -> int:
        return self._size

    def get_backend_name(self) -> str:
        return _NAME

    def get_comm_name(self) -> str:
        return self._name

    def set_timeout(self, timeout: timedelta) -> None:
        self._group.set_timeout(timeout)

    def split(self, ranks: Sequence[int], name: str, options: Any) -> BraidComm | None:
        """A communicator of these ranks, which are all in one call; None for those in none."""
        group, ranks, rank, size = self._group, list(ranks), self._rank, self._size
        self._splits += 1
        if not ranks:
            return None
        if len(set(ranks)) != len(ranks) or not all(0 <= each < size for each in ranks):
            raise RuntimeError(
                f"split: {ranks} are not different ranks of communicator {self._name}, whose "
                f"ranks are 0 to {size - 1}"
            )
        if rank not in ranks:
            raise RuntimeError(
                f"split: rank {rank} is not among {ranks}; a rank that is in no part gives no ranks"
            )
        part = BraidComm()
        prefix = f"split/{self._splits}/{name}/{min(ranks)}"
        store = PrefixStore(prefix, group.get_group_store())
        part._open(
            store, ranks.index(rank), len(ranks), name, options.timeout, self._ends_in_call
        )
        return part

    # Collectives.

    def all_reduce(self, tensor: torch.Tensor, op: Any, async_op: bool) -> Work | None:
        return self._reduced("allreduce", tensor, 0, op, async_op, is_wanted=True)

    def reduce(self, tensor: torch.Tensor, root: int, op: Any, async_op: bool) -> Work | None:
        return self._reduced("reduce", tensor, root, op, async_op, is_wanted=root == self._rank)

    def broadcast(self, tensor: torch.Tensor, root: int, async_op: bool) -> Work | None:
        return self._run("broadcast", [tensor], async_op=async_op, root=root)

    def all_gather(self, outputs: Any, tensor: torch.Tensor, async_op: bool) -> Work | None:
        return self._run("allgather", [outputs], [tensor], async_op=async_op)

    all_gather_v = all_gather

    def all_gather_single(self, output: Any, input: Any, async_op: bool) -> Work | None:
        return self._run("all_gather_single", output, input, async_op=async_op)

    def reduce_scatter(self, output: Any, inputs: Any, op: Any, async_op: bool) -> Work | None:
        given = [multiplied(each, op) for each in inputs]
        return self._run("reduce_scatter", [output], [given], async_op=async_op, op=op)

    reduce_scatter_v = reduce_scatter

    def reduce_scatter_single(self, output: Any, input: Any, op: Any, async_op: bool) -> Work | None:
        given = multiplied(input, op)
        return self._run("reduce_scatter_single", output, given, async_op=async_op, op=op)

    def all_to_all_single(self, output: Any, input: Any, async_op: bool) -> Work | None:
        return self.all_to_all_v_single(output, input, [], [], async_op)

    def all_to_all_v_single(
        self, output: torch.Tensor, input: torch.Tensor, output_splits: list[int],
        input_splits: list[int], async_op: bool,
    ) -> Work | None:  # fmt: skip
        splits = output_splits, input_splits
        return self._run("all_to_all_single", output, input, *splits, async_op=async_op)

    def all_to_all(self, outputs: Any, inputs: Any, async_op: bool) -> Work | None:
        return self._run("alltoall", outputs, inputs, async_op=async_op)

    def scatter(self, output: Any, inputs: Any, root: int, async_op: bool) -> Work | None:
        return self._run("scatter", [output], [inputs], async_op=async_op, root=root)

    def gather(self, outputs: Any, input: Any, root: int, async_op: bool) -> Work | None:
        return self._run("gather", [outputs], [input], async_op=async_op, root=root)

    def barrier(self, async_op: bool) -> Work | None:
        return self._run("barrier", async_op=async_op)

    def send(self, tensor: torch.Tensor, dst: int, async_op: bool) -> Work | None:
        return self._out(self._group.send([tensor], dst), async_op)

    def recv(self, tensor: torch.Tensor, src: int, async_op: bool) -> Work | None:
        return self._out(self._group.recv([tensor], src), async_op)

    def _open(
        self, store: Store, rank: int, size: int, name: str, timeout: timedelta, ends_in_call: bool
    ) -> None:
        self._name, self._rank, self._size = name, rank, size
        self._ends_in_call = ends_in_call
        self._made = create_group(store, rank, size, timeout, name)
        self._made.setGroupName(name)

    @property
    def _group(self) -> BraidProcessGroup:
        if self._made is None:
            raise RuntimeError(
                f"braid: communicator {self._name or '(no name)'} is not open: it has ended by "
                "finalize(), or new_comm() and split() have not made it"
            )
        return self._made

    def _run(
        self, what: str, *given: Any, async_op: bool, root: int = 0, op: Any = None
    ) -> Work | None:
        """The process group's collective of that name."""
        work = getattr(self._group, what)(*given, self._options(async_op, root, op))
        return self._out(work, async_op)

    def _reduced(
        self, what: str, tensor: torch.Tensor, root: int, op: Any, async_op: bool, *, is_wanted: bool
    ) -> Work | None:
        given = multiplied(tensor, op)
        work = getattr(self._group, what)([given], self._options(async_op, root, op))
        if given is not tensor and is_wanted:
            work = CopyBackWork(work, [tensor], [given])
        return self._out(work, async_op)

    def _options(self, async_op: bool, root: int, op: Any) -> _Options:
        reduction = ReduceOp.SUM if op is None else _OPS[op.type]
        return _Options(async_op and not self._ends_in_call, root, reduction)

    def _out(self, work: Work, async_op: bool) -> Work | None:
        """None: the operation is over."""
        if async_op and not self._ends_in_call:
            return work
        work.wait()
        return None


def _is_for_distributed() -> bool:
    """Whether torch.distributed is making this communicator for one of its groups.

    Then operations end in their call. Between such a group and a backend in Python a future ends
    only by a wait(), and DDP waits for futures without one.
    """
    makes = getattr(distributed_c10d, "_create_torchcomms_backend", None)
    if makes is None:
        return True  # A torch that does it elsewhere: this is right for either caller.
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not makes.__code__:
        frame = frame.f_back
    return frame is not None


torchcomms.register_backend(_NAME, BraidComm)
