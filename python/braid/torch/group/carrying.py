# SPDX-License-Identifier: Apache-2.0
"""From torch's tensors to the engine's memory and back.

CUDA tensors that libbraid cannot take from the GPU, and those of callbacks, take the simple path here:
they are copied into the arena, the caller waits, and the result is in them before the (already ended)
Work is returned. So nobody has to wait for a stream: neither who waits for the Work on another stream,
nor who has its future. All others take the path of on_devices.py.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from braid.torch.group.arguments import (
    carriage_of_copies,
    flattened,
    op_of,
    packable,
    timeout_ms_of,
)
from braid.torch.group.on_devices import start_on_device
from braid.torch.group.unheard import refuse_nans
from braid.torch.operations import devices
from braid.torch.operations import engine as _engine
from braid.torch.operations.callbacks import current_origin
from braid.torch.operations.carriage import Carriage, carriage_of_reduction, refuse_sparse
from braid.torch.operations.device_operations import Collective
from braid.torch.operations.engine import Engine
from braid.torch.operations.flight_record import Entry
from braid.torch.operations.packing import Unpack, unpack_by_rank, unpack_whole
from braid.torch.operations.profiling import ENDS_IN_ANY_THREAD, NAMES, ProfiledWork, is_profiling
from braid.torch.operations.work import BraidWork, FutureWork, WorkList, finished, handed_out


class CarryingMixin:
    """The part of BraidProcessGroup that runs the operations which its other parts describe."""

    engine: Engine
    _rank: int
    _size: int
    _coalescing: list[Any] | None
    checks_nans: bool

    def _reduce(
        self, inputs: Any, outputs: Any, carriage: Carriage, opts: Any, timeout: Any = None,
        name: str = "",
    ) -> FutureWork:  # fmt: skip
        count = sum(tensor.numel() for tensor in inputs) * carriage.per_element
        return self._run(
            _engine.ALL_REDUCE, carriage.dtype, count, inputs, outputs, opts, timeout,
            reduction=carriage.reduction, value=inputs, name=name,
        )  # fmt: skip

    def _reduce_scatter(
        self, output: torch.Tensor, blocks: list[torch.Tensor], opts: Any, timeout: Any = None
    ) -> Any:
        refuse_sparse([output, *blocks])
        op = op_of(opts)
        if len(blocks) == self._size and len({block.numel() for block in blocks}) > 1:
            return self._reduce_scatter_uneven(output, blocks, op, opts, timeout)
        elements = sum(block.numel() for block in blocks)
        if elements != output.numel() * self._size:
            raise ValueError(
                f"reduce-scatter: the input has {elements} elements, {self._size} ranks with "
                f"{output.numel()} each need {output.numel() * self._size}"
            )
        carriage = carriage_of_reduction(output.dtype, op)
        if carriage is None:
            return self._reduce_scattered_by_gloo(output, blocks, op)
        return self._run(
            _engine.REDUCE_SCATTER, carriage.dtype, output.numel() * carriage.per_element,
            blocks, [output], opts, timeout, reduction=carriage.reduction,
        )  # fmt: skip

    def _reduce_scatter_uneven(
        self, output: torch.Tensor, blocks: list[torch.Tensor], op: Any, opts: Any, timeout: Any
    ) -> Any:
        """Blocks of different sizes, which all ranks know: made equal, where that is not more to send
        than all of them to everybody."""
        sizes = [block.numel() for block in blocks]
        if sizes[self._rank] != output.numel():
            raise ValueError(
                f"reduce-scatter: rank {self._rank} has room for {output.numel()} elements, and its "
                f"block has {sizes[self._rank]}"
            )
        carriage = carriage_of_reduction(output.dtype, op)
        if carriage is None:
            return self._reduce_scattered_by_gloo(output, blocks, op)
        largest = max(sizes)
        room = partial(devices.cuda.vector, dtype=output.dtype, device=devices.cuda.device_of(output))
        if largest * self._size > 2 * sum(sizes):
            before = sum(sizes[: self._rank])
            after = sum(sizes) - before - output.numel()
            rest = [room(before), output, room(after)]
            return self._run(
                _engine.ALL_REDUCE, carriage.dtype, sum(sizes) * carriage.per_element, blocks,
                rest, opts, timeout, reduction=carriage.reduction, value=[output],
                name="reduce_scatter",
            )  # fmt: skip
        padding = room(largest - min(sizes)).zero_()
        padded = [each for b in blocks for each in (b, padding[: largest - b.numel()])]
        rest = [output, room(largest - output.numel())]
        return self._run(
            _engine.REDUCE_SCATTER, carriage.dtype, largest * carriage.per_element, padded, rest,
            opts, timeout, reduction=carriage.reduction, value=[output],
        )  # fmt: skip

    def _gather(
        self, inputs: Any, by_rank: list[list[torch.Tensor]], opts: Any, timeout: Any = None
    ) -> Any:
        """An all-gather of `inputs`, of which rank r's go to by_rank[r]."""
        refuse_sparse(inputs)
        sizes = [sum(block.nbytes for block in blocks) for blocks in by_rank]
        own = sum(tensor.nbytes for tensor in inputs)
        if len(by_rank) != self._size or sizes[self._rank] != own:
            raise ValueError(
                f"all-gather: rank {self._rank} gives {own} bytes and has room for {sizes} "
                f"from {self._size} ranks"
            )
        if len(set(sizes)) > 1:
            # Blocks of different sizes: every rank knows all of them, so each broadcasts its own.
            works = []
            for root, blocks in enumerate(by_rank):
                sending = root == self._rank
                dtype, count = carriage_of_copies(blocks)
                works.append(
                    self._run(
                        _engine.BROADCAST,
                        dtype,
                        count,
                        inputs if sending else [],
                        blocks,
                        opts,
                        timeout,
                        root=root,
                    )  # fmt: skip
                )
            return self._out(works)
        dtype, count = carriage_of_copies(inputs)
        work = self._run(
            _engine.ALL_GATHER, dtype, count, inputs, by_rank, opts, timeout,
            value=[block for blocks in by_rank for block in blocks],
        )  # fmt: skip
        return self._out([work])

    def _run(
        self, collective: int, dtype: int, count: int, inputs: Any, outputs: Any, opts: Any,
        timeout: Any = None, *, reduction: int = 0, root: int = 0, value: Any = None,
        name: str = "", splits: Any = None, meanwhile: Any = None,
    ) -> FutureWork:  # fmt: skip
        """One operation. `outputs` are tensors, or lists of them by rank for an all-gather."""
        value = outputs if value is None else value
        profiled = None
        if is_profiling():
            profiled = ProfiledWork(value, collective, inputs or value, name)
        if count == 0 and collective not in (_engine.BARRIER, _engine.ALL_TO_ALL):
            work = BraidWork(value) if profiled is None else profiled
            work.finish()
            return work
        if self.checks_nans:
            refuse_nans(inputs, name or NAMES[collective], self._rank)
        entry = self._recorded(name or NAMES[collective], inputs, outputs, value)
        tensors = inputs if outputs is inputs else [*inputs, *flattened(outputs)]
        on = devices.cuda.devices_of(tensors)
        timeout_ms = timeout_ms_of(opts, timeout)
        # To the profiler an event is asynchronous if it ends in another thread.
        wait = not (getattr(opts, "asyncOp", True) or (profiled and ENDS_IN_ANY_THREAD))
        try:
            if on and self.engine.on_devices.take(tensors, on):
                if meanwhile is not None:
                    meanwhile()
                how = Collective(
                    collective, dtype, count, reduction, root, timeout_ms,
                    *self.engine.splits_of(splits),
                )  # fmt: skip
                operations = self.engine.on_devices
                work = start_on_device(operations, how, inputs, outputs, on[0], value, entry)
                if profiled is not None:
                    profiled.finish()
                if wait:
                    work.wait()  # Who asks for no asynchronous operation need not wait itself.
            else:
                work = BraidWork(value) if profiled is None else profiled
                if entry is not None:
                    work.is_recorded_by(entry)
                self._start(
                    collective, dtype, count, [packable(tensor) for tensor in inputs], outputs, on,
                    work, wait or bool(on), reduction, root, timeout_ms, splits, meanwhile,
                )
        except Exception as error:
            if entry is not None:
                entry.end(error)
            raise
        if profiled is not None:
            profiled.call_ends()
        return work

    def _start(
        self, collective: int, dtype: int, count: int, inputs: Any, outputs: Any, on: Any,
        work: BraidWork, wait: bool, reduction: int, root: int, timeout_ms: int, splits: Any,
        meanwhile: Any,
    ) -> None:  # fmt: skip
        """Through the arena."""
        pieces = self.engine.cuts.pieces_of(collective, dtype, count)
        # Callbacks number what they start by the operations of scripts, and are on all ranks.
        if pieces and current_origin() is None:
            self.engine.run_in_pieces(
                pieces, collective, dtype, inputs, flattened(outputs), work,
                reduction=reduction, root=root, timeout_ms=timeout_ms, wait=wait,
            )  # fmt: skip
            return
        self.engine.run(
            collective, dtype, count, inputs, self._unpack(collective, outputs, on), work,
            reduction=reduction, root=root, timeout_ms=timeout_ms, splits=splits,
            meanwhile=meanwhile, wait=wait,
        )  # fmt: skip
        devices.cuda.hold(on)

    def _unpack(self, collective: int, outputs: Any, on_devices: Any) -> Unpack | None:
        if not outputs:
            return None
        if not isinstance(outputs[0], torch.Tensor):
            return unpack_by_rank(outputs)
        if on_devices and collective == _engine.ALL_GATHER:
            # Results lie by node. Only libbraid's copies, which are for CPU memory, are by rank.
            return unpack_by_rank([[block] for block in outputs[0].view(-1).chunk(self._size)])
        return unpack_whole(outputs)

    def _recorded(self, name: str, inputs: Any, outputs: Any, value: Any) -> Entry | None:
        """In the flight record, as torch's own backends describe it."""
        if current_origin() is not None:
            return None  # Callbacks come in another order on other ranks.
        if name in ("all_reduce", "reduce", "broadcast"):
            inputs = outputs = value  # In place on all ranks, also where a rank only gives or gets.
        elif name == "all_gather":
            outputs = value
        return self.engine.record.add(name, inputs, outputs)

    def _out(self, works: list[Any]) -> Any:
        work = works[0] if len(works) == 1 else WorkList(works) if works else finished([])
        if self._coalescing is not None:
            self._coalescing.append(work)
        return handed_out(work)
