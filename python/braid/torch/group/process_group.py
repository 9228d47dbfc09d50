# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's process group over braid.

A pure-Python subclass, so that one package serves every torch: DDP, FSDP2, DeviceMesh and scripts
call these methods from Python and from C++. Each group is one braid job.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import ProcessGroup, ReduceOp, Store, distributed_c10d

from braid import Job
from braid.torch.group.arguments import carriage_of_copies, listed, op_of, same_dtype_runs
from braid.torch.group.carrying import CarryingMixin
from braid.torch.group.exchanges import ExchangeMixin
from braid.torch.group.fallback import FallbackMixin
from braid.torch.group.gloo import InnerGloo
from braid.torch.group.monitored import MonitoredBarrier
from braid.torch.group.peers import PeerMixin
from braid.torch.group.unheard import checks_nans, tell_unused
from braid.torch.operations import engine as _engine
from braid.torch.operations.carriage import carriage_of_copy, carriage_of_reduction, refuse_sparse
from braid.torch.operations.engine import Engine
from braid.torch.operations.flight_record import GroupRecord
from braid.torch.operations.untraced import untraced
from braid.torch.operations.work import WorkList, handed_out


class BraidProcessGroup(
    ExchangeMixin, PeerMixin, CarryingMixin, FallbackMixin, ProcessGroup
):
    """`job` becomes the group's own; shutdown(), abort() or the group's end close it."""

    supports_splitting = False
    supports_coalescing = False

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta, job: Job) -> None:
        super().__init__(rank, size)
        self._store = store
        self._rank = rank
        self._size = size
        self._timeout = timeout
        self._names = ["", "undefined"]
        self._coalescing: list[Any] | None = None
        record = GroupRecord(self, self._names, size)
        self.engine = Engine(job, timeout.total_seconds(), record)
        self._inner = InnerGloo(store, job, rank, size, timeout, self.engine.callbacks)
        self._monitored = MonitoredBarrier(store, rank, size, self._inner.watch)
        self.checks_nans = checks_nans()
        self._prefixes = 0
        self._splits = 0
        # Also runs at exit: a script may end without destroy_process_group.
        self._end = weakref.finalize(self, _end, self.engine, self._inner)

    # What torch asks about a group.

    def getBackendName(self) -> str:
        return "braid"

    def getRank(self) -> int:
        return self._rank

    def getSize(self) -> int:
        return self._size

    def getGroupName(self) -> str:
        return self._names[0]

    def setGroupName(self, name: str) -> None:
        self._names[0] = name

    def getGroupDesc(self) -> str:
        return self._names[1]

    def setGroupDesc(self, description: str) -> None:
        self._names[1] = description

    # Before 2.9 these reach C++, which keeps names only in backends that this group has not.
    _set_group_name = setGroupName
    _set_group_desc = setGroupDesc
    group_name = property(getGroupName)
    group_desc = property(getGroupDesc)

    @property
    def _device_types(self) -> list[torch.device]:
        """Asked by what has to know whether the group takes CPU tensors, as dcp.async_save."""
        # While torch makes the group it asks whether there are backends in C++ to be recorded.
        if self not in distributed_c10d._world.pg_map:
            return []
        cuda = [torch.device("cuda")] if torch.cuda.is_available() else []
        return [torch.device("cpu"), *cuda]

    @property
    def operation_timeout(self) -> timedelta:
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """The timeout of operations from here on, on this rank: torch.distributed.set_timeout()."""
        self._timeout = timeout
        self.engine.set_timeout(timeout.total_seconds())
        self._inner.set_timeout(timeout)

    _set_default_timeout = set_timeout

    def _add_ephemeral_timeout(self, timeout: timedelta) -> None:
        """Beside it, for those that start before the first of them has ended."""
        self.engine.job.extend_timeout(timeout.total_seconds())

    def get_group_store(self) -> Store:
        return self._store

    def _get_backend(self, device: torch.device) -> BraidProcessGroup:
        return self

    get_backend = _get_backend

    def _set_sequence_number_for_group(self) -> None:
        """Nothing to set: the sequence starts at 0 on every rank."""

    def _get_sequence_number_for_group(self) -> int:
        return self.engine.sequence

    def next_prefix(self, kind: str = "ddp") -> str:
        """A name for a set of registered tensors, the same on all ranks."""
        self._prefixes += 1
        return f"{kind}{self._prefixes}"

    def next_split(self) -> int:
        """The number of a split of this group, the same on all ranks."""
        self._splits += 1
        return self._splits

    def shutdown(self) -> None:
        if self is distributed_c10d.GroupMember.WORLD and self._rank == 0:
            tell_unused()
        self.engine.on_devices.finish()
        self._end()

    def abort(self) -> None:
        """The same, without waiting for operations that CUDA streams wait for."""
        self.engine.on_devices.let_go()
        self.shutdown()

    # Collectives that braid carries.

    @untraced
    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> Any:
        tensors = listed(tensors)
        op = op_of(opts)
        works = []
        for group in same_dtype_runs(tensors):
            carriage = carriage_of_reduction(group[0].dtype, op)
            if carriage is None or group[0].is_sparse:
                works.append(self._reduced_by_gloo(group, op))
            else:
                works.append(self._reduce(group, group, carriage, opts, timeout))
        return self._out(works)

    allreduce_coalesced = allreduce

    def future_sum(self, tensor: torch.Tensor) -> torch.futures.Future[list[torch.Tensor]]:
        """allreduce() with the future at once: in every torch it is one that knows what callbacks
        of scripts need, which is lost where a Work goes through C++."""
        carriage = carriage_of_reduction(tensor.dtype, ReduceOp.SUM)
        if carriage is None or tensor.is_sparse:
            return self.allreduce([tensor]).get_future()
        return self._reduce([tensor], [tensor], carriage, None).get_future()

    @untraced
    def reduce(
        self, tensors: Any, opts: Any = None, root: int | None = None, timeout: Any = None
    ) -> Any:
        """An all-reduce whose result only the root looks at."""
        tensors = listed(tensors)
        if isinstance(opts, int):
            root, opts = opts, root  # As torch's own group has it: the root, and then the operation.
        root = opts.rootRank if root is None else root
        op = op_of(opts)
        refuse_sparse(tensors)
        carriage = carriage_of_reduction(tensors[0].dtype, op)
        if carriage is None:
            return self._out([self._reduce_by_gloo(tensors, op, root)])
        outputs = tensors if root == self._rank else []
        return self._out([self._reduce(tensors, outputs, carriage, opts, timeout, name="reduce")])

    @untraced
    def broadcast(
        self, tensors: Any, opts: Any = None, root: int | None = None, timeout: Any = None
    ) -> Any:
        tensors = listed(tensors)
        root = opts if isinstance(opts, int) else opts.rootRank if root is None else root
        dtype, count = carriage_of_copies(tensors)
        sending = root == self._rank
        work = self._run(
            _engine.BROADCAST, dtype, count, tensors if sending else [],
            [] if sending else tensors, opts, timeout, root=root, value=tensors,
        )  # fmt: skip
        return self._out([work])

    @untraced
    def allgather(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None) -> Any:
        if isinstance(inputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        by_rank = [list(blocks) for blocks in zip(*outputs)]
        return self._gather(inputs, by_rank, opts, timeout)

    @untraced
    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """Unlike allgather's, these outputs are lists by rank, of one tensor per input."""
        return self._gather(inputs, [list(blocks) for blocks in outputs], opts)

    @untraced
    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Any:
        refuse_sparse([output, input])
        if output.is_contiguous() and output.dtype == input.dtype:
            dtype, count = carriage_of_copy(input)
            if output.numel() != input.numel() * self._size:
                raise ValueError(
                    f"all-gather: the output has {output.numel()} elements, "
                    f"{self._size} ranks with {input.numel()} each need "
                    f"{input.numel() * self._size}"
                )
            work = self._run(_engine.ALL_GATHER, dtype, count, [input], [output], opts)
            return self._out([work])
        return self._gather([input], [[block] for block in output.chunk(self._size)], opts)

    _allgather_base = all_gather_single

    @untraced
    def all_gather_single_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Any:
        chunks = [output.view(-1).chunk(self._size) for output in outputs]
        return self._gather(inputs, [list(blocks) for blocks in zip(*chunks)], opts)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    @untraced
    def reduce_scatter(
        self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None
    ) -> Any:
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        works = [
            self._reduce_scatter(output, list(blocks), opts, timeout)
            for output, blocks in zip(outputs, inputs)
        ]
        return self._out(works)

    @untraced
    def reduce_scatter_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> Any:
        return self._out([self._reduce_scatter(output, [input], opts)])

    _reduce_scatter_base = reduce_scatter_single

    @untraced
    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Any:
        return self._out([self._reduce_scatter(o, [i], opts) for o, i in zip(outputs, inputs)])

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    @untraced
    def barrier(self, opts: Any = None, timeout: Any = None) -> Any:
        return self._out([self._run(_engine.BARRIER, 0, 0, [], [], opts, timeout)])

    @untraced
    def monitored_barrier(
        self, timeout: timedelta | None = None, wait_all_ranks: bool = False
    ) -> None:
        self._monitored.wait(self._timeout if timeout is None else timeout, wait_all_ranks)

    # Coalescing: operations start as they come, the end of the block returns all of them as one.

    @untraced
    def start_coalescing(self, device: torch.device) -> None:
        self._coalescing = []

    @untraced
    def end_coalescing(self, device: torch.device) -> Any:
        works, self._coalescing = self._coalescing, None
        return handed_out(WorkList(works or []))

    _start_coalescing = start_coalescing
    _end_coalescing = end_coalescing


def _end(engine: Engine, inner: InnerGloo) -> None:
    inner.close()
    engine.close()
