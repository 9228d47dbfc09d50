# SPDX-License-Identifier: Apache-2.0
"""Operations in pieces on their way: in through the arena piece by piece, out as each of them ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch.distributed import DistBackendError

from braid import BraidError, Collective, Job, Memory
from braid.torch.operations import devices
from braid.torch.operations.arena import Arena
from braid.torch.operations.device_copies import check_has_memory
from braid.torch.operations.failures import as_distributed
from braid.torch.operations.pieces import Joined, Piece, Rows
from braid.torch.operations.work import BraidWork


class Way(NamedTuple):
    """How pieces of one engine go: its job, where their inputs lie, and what waits for a ticket."""

    job: Job
    arena: Arena
    wait: Callable[[int], None]


class CutOperation(NamedTuple):
    """What the pieces have in common, as braid_operation has it."""

    collective: int
    dtype: int
    reduction: int
    root: int
    timeout_ms: int


class Results:
    """Where an operation's result goes: contiguous memory of the CPU, and from there to what else it is."""

    def __init__(self, outputs: Sequence[torch.Tensor], *, by_rank: bool) -> None:
        """`by_rank`: its blocks lie where each rank's block is."""
        check_has_memory(outputs)
        self._outputs = outputs
        self._by_rank = by_rank
        self._rooms = [_room_for(output) for output in outputs]
        self._joined = Joined(self._rooms)

    def put_in(self, rows: Rows, job: Job, ticket: int) -> None:
        """What the piece with this ticket has."""
        if not self._outputs:
            return
        if self._by_rank:
            self._joined.put_in(rows, lambda rank: job.result_address_of_rank(ticket, rank)[0])
            return
        begin = job.result_address(ticket)[0]
        self._joined.put_in(rows, lambda row: begin + row * rows.width)

    def finish(self) -> None:
        """When all of it is there. As if written by another process: not seen by autograd."""
        for output, room in zip(self._outputs, self._rooms):
            if room is not output:
                output.data.copy_(room)
        devices.cuda.hold(devices.cuda.devices_of(self._outputs))


class InPieces:
    """A cut operation: the thread that starts it submits, then one thread at a time completes it."""

    def __init__(
        self, way: Way, operation: CutOperation, pieces: Sequence[Piece],
        inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], work: BraidWork,
    ) -> None:  # fmt: skip
        """`inputs` and `outputs` lie one after the other in the operation's input and result."""
        check_has_memory(inputs)
        self.work = work
        self._way = way
        self._operation = operation
        self._pieces = pieces
        self._given = Joined([_in_cpu_memory(tensor) for tensor in inputs]) if inputs else None
        by_rank = operation.collective == Collective.ALL_GATHER
        self._results: Results | None = Results(outputs, by_rank=by_rank)
        # Tickets of the pieces that were submitted, and memory of the arena with their inputs.
        self._flights: list[tuple[int, Memory | None]] = []

    @property
    def count(self) -> int:
        """How many pieces it has."""
        return len(self._pieces)

    @property
    def has_begun(self) -> bool:
        """Whether pieces were submitted, so that other ranks count on all of them."""
        return bool(self._flights)

    def submit(self, stream: int, first_step: int) -> None:
        """Each piece as soon as it is copied: the daemon is at work with it while the next one is."""
        for step, piece in enumerate(self._pieces, first_step):
            memory = self._staged(piece.input)
            try:
                ticket = self._submit(stream, step, piece, memory)
            except BraidError as cause:
                if memory is not None:
                    self._way.arena.give_back(memory)  # The daemon has not seen it.
                raise self._failure(cause, len(self._flights)) from cause
            self._flights.append((ticket, memory))
        self._given = None

    def give_up(self) -> None:
        """The caller is told an error, and wants no result. What was submitted must still end."""
        self._given = self._results = None

    def complete(self) -> Exception | None:
        """Waits for each piece and copies its result out, while others are on their way."""
        for index, (ticket, memory) in enumerate(self._flights):
            try:
                self._way.wait(ticket)
                if self._results is not None:
                    self._results.put_in(self._pieces[index].result, self._way.job, ticket)
                self._way.job.release(ticket)
            except Exception as cause:
                self._release_from(index)
                return self._failure(cause, index) if isinstance(cause, BraidError) else cause
            if memory is not None:
                self._way.arena.give_back(memory)
        if self._results is not None:
            self._results.finish()
        return None

    def _staged(self, rows: Rows) -> Memory | None:
        if self._given is None:
            return None
        memory = self._way.arena.take(rows.nbytes)
        try:
            self._given.take_out(rows, memory.address)
        except BaseException:
            self._way.arena.give_back(memory)
            raise
        return memory

    def _submit(self, stream: int, step: int, piece: Piece, memory: Memory | None) -> int:
        collective, dtype, reduction, root, timeout_ms = self._operation
        address = memory.address if memory is not None else None
        return self._way.job.submit_raw(
            collective, stream, step, reduction, root, dtype, timeout_ms, piece.count, address
        )

    def _release_from(self, index: int) -> None:
        # Inputs are not reused: the daemon may still be reading them.
        for ticket, _ in self._flights[index:]:
            try:
                self._way.job.release(ticket)
            except BraidError:
                pass  # The first error is the one to tell.

    def _failure(self, cause: BraidError, index: int) -> DistBackendError:
        """An error that names the whole operation."""
        count = sum(piece.count for piece in self._pieces)
        what = Collective(self._operation.collective).name.lower().replace("_", "-")
        after = f" (piece {index + 1} of {self.count} of the {what} of {count} elements)"
        return as_distributed(cause, after=after)


def _in_cpu_memory(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().cpu() if devices.cuda.holds(tensor) else tensor


def _room_for(output: torch.Tensor) -> torch.Tensor:
    if output.is_contiguous() and not devices.cuda.holds(output):
        return output
    return torch.empty(output.shape, dtype=output.dtype)
