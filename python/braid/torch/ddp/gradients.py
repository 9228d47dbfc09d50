# SPDX-License-Identifier: Apache-2.0
"""A model's gradients as planned tensors of a job, submitted as they become ready.

A step is one iteration of the model. How such tensors are submitted is described in
planned/tensors.py.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import torch

from braid import BraidError, Reduction
from braid.torch.ddp.buckets import Bucket, low_rank_of
from braid.torch.ddp.claims import has_claims, is_claimed
from braid.torch.ddp.planned_tensors import Layout, Layouts, Member, Part
from braid.torch.ddp.power_sgd import LowRank, SecondSums
from braid.torch.ddp.registrations import Place
from braid.torch.ddp.ways import way_of
from braid.torch.operations import devices
from braid.torch.operations.callbacks import Origin
from braid.torch.operations.engine import Engine
from braid.torch.operations.explaining import explain_once
from braid.torch.operations.failures import as_distributed
from braid.torch.operations.futures import Failure, Source, future_of

AVERAGE = int(Reduction.AVERAGE)
SUM = int(Reduction.SUM)

# Follows a tensor's name in that of its second all-reduce.
SECOND = "#Q"

# While tensors are still being submitted nobody waits for a result, and handling each one at once
# would take the interpreter from the thread that trains, again and again. So small ones are handled
# in batches: a pause, then as many as have come. Large ones are copied beside the backward pass.
_PAUSE_SECONDS = 0.002
_BATCH_SECONDS = 0.0005
_LARGE_BYTES = 1 << 16


class GradientSet:
    """The gradients of one model, used by the thread that runs the backward pass.

    Arithmetic: BRAID_AVERAGE divides after the sum and lets the copy into the arena be a plain one.
    With 16-bit floats of little range among them, gradients are scaled before, as DDP does it.
    """

    def __init__(
        self, engine: Engine, place: Place, members: Sequence[Member], device: torch.device | None
    ) -> None:
        """`place` is this model's, which it has until this ends. `device`: the GPU on which the
        gradients are; None: they are not on a GPU."""
        self._engine = engine
        self._job = engine.job
        self._size = engine.job.world_size
        self._parameters = [g.parameter for member in members for g in member.gradients]
        self._averages = all(member.form.dtype != torch.float16 for member in members)
        self._reduction = AVERAGE if self._averages else SUM
        self._factor = 1.0 / self._size
        self._step = -1
        self._submitted = 0
        self._averaged = 0  # Buckets, of which all ranks have the same in the same order.
        # Buckets handed to the completion thread, and those that it has ended.
        self._begun = 0
        self._ended = 0
        self._one_ended = threading.Condition()
        self._all_submitted = threading.Event()
        self._batch_end = 0.0
        self._registration = place.registration_of(self, engine, members)
        self._first_step = self._registration.next_step
        self._name = f"{engine.job.name} {place.prefix}"
        self._way = way_of(engine, self, device)
        handles = self._registration.handles
        self._tensors = self._way.tensors_of(members, handles, self._reduction)
        self._layouts = Layouts(self._tensors)
        self._second = self._prepare_low_ranks(place.prefix, members)
        if self._second is not None:
            self._registration.add(self._second.handles)
        # Tensors whose first all-reduce has ended in this step, and buckets that wait for Qs.
        self._firsts_ended = 0
        self._halfway: list[Bucket] = []
        engine.gradients.start()
        explain_once(self._job)

    def _prepare_low_ranks(self, prefix: str, members: Sequence[Member]) -> SecondSums | None:
        names = []
        for place, (member, tensor) in enumerate(zip(members, self._tensors)):
            if member.shape is not None:
                device = tensor.parameters[0].device
                tensor.low_rank = LowRank(member.shape, device, seed=place)
                names.append(f"{prefix}/{member.name}{SECOND}")
        low_ranks = [tensor.low_rank for tensor in self._tensors if tensor.low_rank]
        return SecondSums(self._engine.job, self._way.operations_of, names, low_ranks) if names else None

    @property
    def parameter_count(self) -> int:
        return len(self._parameters)

    @property
    def tensor_count(self) -> int:
        return len(self._tensors)

    def claimed(self) -> tuple[bool, bool]:
        """Whether optimizers of braid reduce any of these gradients now, and all."""
        claims = [is_claimed(parameter) for parameter in self._parameters] if has_claims() else [False]
        return any(claims), all(claims)

    def begin(self, step: int, active_ranks: int | None = None) -> None:
        """Before a step's first bucket.

        With `active_ranks` gradients are divided by that, instead of by the number of all ranks.
        """
        if self._submitted not in (0, len(self._tensors)):
            # The last backward pass was abandoned in the middle, and nobody reads its results.
            self.fill_up()
        self._wait_for_all()
        self._way.begin()
        self._step = self._first_step + step
        self._registration.next_step = self._step + 1
        self._submitted = 0
        self._firsts_ended = 0
        self._all_submitted.clear()
        reduction = AVERAGE if self._averages and active_ranks is None else SUM
        self._factor = 1.0 / (active_ranks or self._size)
        if reduction != self._reduction:
            self._reduction = reduction
            for tensor in self._tensors:
                tensor.operation.set_reduction(reduction)

    def average(
        self, parameters: list[torch.Tensor], buffer: torch.Tensor
    ) -> torch.futures.Future[torch.Tensor] | None:
        """Averages a bucket in place. None: it does not consist of tensors of this step."""
        layout = self._layouts.of(parameters)
        if layout is None or not self._fits(layout, buffer):
            return None
        bucket = Bucket(self._engine, self.finish, buffer)
        tensors = [buffer]
        bucket.entry = self._engine.record.add("all_reduce", tensors, tensors)
        origin = Origin(self._name, self._averaged)
        self._averaged += 1
        on_devices = devices.cuda.devices_of(buffer)
        source = Source(origin, self._engine.callbacks, on_devices)
        bucket.future = future = future_of(bucket.promise, source)
        try:
            self._submit(layout.parts, bucket)
        except Exception as cause:
            bucket.fail(cause)
            raise bucket.error
        finally:
            # Also after an error: tickets that were given must be waited for.
            self._hand_over(bucket)
        return future

    def fill_up(self) -> None:
        """Submits what is missing in this step, so that what is there can end.

        With values that nobody can take for gradients, should another rank not have abandoned the
        step as this one did.
        """
        missing = [tensor for tensor in self._tensors if tensor.step != self._step]
        bucket = Bucket(self._engine, self.finish, None)
        try:
            for tensor in missing:
                tensor.step = self._step
                ticket = self._way.submit_nothing(tensor, self._step)
                bucket.tickets.append((ticket, Part(tensor, [])))
                self._submitted += 1
        except BraidError as error:
            raise as_distributed(error) from error
        finally:
            self._hand_over(bucket)

    def _fits(self, layout: Layout, buffer: torch.Tensor) -> bool:
        if buffer.is_sparse or not buffer.is_contiguous():
            return False
        if layout.dtype != buffer.dtype or layout.nbytes != buffer.nbytes:
            return False
        return all(part.tensor.step != self._step for part in layout.parts)

    def _submit(self, parts: Sequence[Part], bucket: Bucket) -> None:
        step, submit = self._step, self._way.submit
        factor = None if self._reduction == AVERAGE else self._factor
        for part in parts:
            part.tensor.step = step
            bucket.tickets.append((submit(bucket, part, step, factor), part))
            self._submitted += 1

    def _hand_over(self, bucket: Bucket) -> None:
        self._begun += 1
        self._engine.gradients.put(bucket)
        if self._submitted == len(self._tensors):
            self._all_submitted.set()

    def _wait_for_all(self) -> None:
        """Until nothing is in flight: the inputs and the buckets are about to be written again.

        DDP has waited for its buckets already, unless a backward pass was abandoned.
        """
        if self._ended != self._begun:
            with self._one_ended:
                self._one_ended.wait_for(lambda: self._ended == self._begun)

    # In the completion thread.

    def finish(self, bucket: Bucket) -> None:
        """Sees a bucket's operations to their end, or to where only sums of Qs are missing."""
        if not self._all_submitted.is_set():
            self._pause(bucket)
        for ticket, part in bucket.tickets:
            low_rank = part.tensor.low_rank
            if low_rank is None:
                self._way.take(bucket, ticket, part)
            else:
                # First, for the other ranks wait for this rank's Q even if what follows fails.
                with self._way.beside():
                    self._second.write_nothing(low_rank)
                self._way.take_matrix(
                    bucket, ticket, part.tensor.view, self._project_back, bucket, low_rank
                )
                self._submit_second(bucket, part)
        self._firsts_ended += len(bucket.tickets)
        if bucket.second_tickets:
            self._halfway.append(bucket)
        else:
            self._end(bucket)
        if self._firsts_ended == len(self._tensors):
            halfway, self._halfway = self._halfway, []
            for bucket in halfway:
                for ticket, part in bucket.second_tickets:
                    matrix = self._second.matrix_of(part.tensor.low_rank)
                    self._way.take_matrix(bucket, ticket, matrix, self._expand, bucket, part)
                self._end(bucket)

    def _end(self, bucket: Bucket) -> None:
        bucket.end_entry()
        with self._one_ended:
            self._ended += 1
            self._one_ended.notify_all()
        if bucket.promise is not None:
            error = bucket.error
            with self._way.beside():
                bucket.promise.set_result(bucket.buffer if error is None else Failure(error))
        bucket.let_go()

    def _pause(self, bucket: Bucket) -> None:
        large = bucket.buffer is not None and bucket.buffer.nbytes >= _LARGE_BYTES
        if not large and time.monotonic() >= self._batch_end:
            self._all_submitted.wait(_PAUSE_SECONDS)
            self._batch_end = time.monotonic() + _BATCH_SECONDS

    def _project_back(self, p: torch.Tensor, bucket: Bucket, low_rank: LowRank) -> None:
        if bucket.buffer is not None:
            self._second.write(low_rank, p, self._factor)

    def _submit_second(self, bucket: Bucket, part: Part) -> None:
        try:
            with self._way.beside():
                ticket = self._second.submit(part.tensor.low_rank, self._step)
        except BraidError as cause:
            bucket.fail(cause)
        else:
            bucket.second_tickets.append((ticket, part))

    def _expand(self, q: torch.Tensor, bucket: Bucket, part: Part) -> None:
        if bucket.buffer is not None:
            part.tensor.low_rank.expand(q, low_rank_of(bucket.buffer, part))
