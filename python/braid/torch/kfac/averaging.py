# SPDX-License-Identifier: Apache-2.0
"""Factors that are averaged over the ranks while the forward and the backward pass go on.

The factors of a model are a set of planned tensors (see planned/tensors.py): those of inputs in the
order of the forward pass, then those of gradients in the order of the backward pass. So the daemons
see when each is there, and merge neighbours by a plan. A step of the set is a step() in which
factors are made.

A factor travels as a triangle with one more element: how many ranks have one of this step. A rank
that has not used a layer gives zeros, and does not count.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import torch

from braid import BraidError
from braid.torch.ddp.ways import way_of
from braid.torch.group.process_group import BraidProcessGroup
from braid.torch.kfac.factors import Factor
from braid.torch.kfac.triangles import unpack
from braid.torch.operations import devices
from braid.torch.operations.failures import as_distributed
from braid.torch.planned.flight import Flight
from braid.torch.planned.tensors import TENSORS_MAX, Form, register

Use = Callable[[torch.Tensor], None]


class FactorAverages:
    """Sums of one model's factors over a group. Hooks may submit in several threads; the thread
    that trains takes all results of a step before the next one begins."""

    def __init__(
        self, group: BraidProcessGroup, factors: Sequence[Factor], dtype: torch.dtype | None
    ) -> None:
        """`factors` are in the order in which they are made, `dtype` is what travels; None: each
        factor's own."""
        if len(factors) > TENSORS_MAX:
            raise ValueError(
                f"KFAC: {len(factors)} factors are too many, {TENSORS_MAX} are the most: leave out "
                "layers with skip_layers"
            )
        self._engine = group.engine
        self._factors = list(factors)
        prefix = group.next_prefix("kfac")
        self._forms = [
            Form(f"{prefix}/{each.name}", dtype or each.dtype, each.elements + 1)
            for each in factors
        ]
        self._places = {id(each): place for place, each in enumerate(factors)}
        self._engine.tickets.take(self, len(factors))
        self._device: torch.device | None = None
        self._operations: list[tuple[torch.Tensor, object]] = []
        self._step = -1
        self._flight: Flight | None = None
        self._tickets: dict[int, int] = {}
        self._submitted: set[int] = set()
        # Hooks of a backward pass on several GPUs run in a thread for each.
        self._lock = threading.Lock()

    @property
    def is_begun(self) -> bool:
        """Whether factors of this step were submitted."""
        return self._flight is not None

    def is_submitted(self, factor: Factor) -> bool:
        """In this step."""
        return self._places[id(factor)] in self._submitted

    def submit(self, factor: Factor) -> None:
        """What the factor has of this step, or that it has nothing."""
        with self._lock:
            try:
                if self._flight is None:
                    self._begin()
                place = self._places[id(factor)]
                vector, operation = self._operations[place]
                _fill(vector, factor)
                self._tickets[place] = operation.submit(self._step)
                self._submitted.add(place)
            except BraidError as error:
                raise as_distributed(error) from error

    def submit_rest(self) -> None:
        """Those that no hook has submitted."""
        for factor in self._factors:
            if not self.is_submitted(factor):
                self.submit(factor)

    def take(self, factor: Factor, use: Use) -> None:
        """Waits for a sum and hands it to `use` as a vector, whose last element is the number of
        ranks in it; the memory is not the caller's. Raises the first error of the step, after which
        nothing else is taken."""
        place = self._places[id(factor)]
        with self._engine.attended:
            self._take(place, use)
        if self._flight.error is not None:
            error = self._flight.error
            for ticket in self._tickets.values():
                self._flight.release(ticket, on_device=self._device is not None)
            self._end()
            raise error

    def end_step(self) -> None:
        """All are taken."""
        if self._flight is not None:
            self._end()

    def _begin(self) -> None:
        if not self._operations:
            self._prepare()
        self._step += 1
        self._flight = Flight(self._engine)
        vectors = [vector for vector, _ in self._operations]
        self._flight.entry = self._engine.record.add("all_reduce", vectors, vectors)

    def _end(self) -> None:
        self._flight.end_entry()
        self._flight = None
        self._tickets.clear()
        self._submitted.clear()

    def _prepare(self) -> None:
        """When the first factor is there: by then the model is where it will be trained."""
        handles = register(self._engine.job, self._forms)
        weights = [each.layer.module.weight for each in self._factors]
        cuda = devices.cuda
        there = {cuda.device_of(each) if cuda.holds(each) else None for each in weights}
        device = there.pop() if len(there) == 1 else None
        if device is not None and self._engine.on_devices.serves(device):
            self._device = device
        self._operations = way_of(self._engine, self, device).operations_of(self._forms, handles)

    def _take(self, place: int, use: Use) -> None:
        ticket = self._tickets.pop(place)
        vector, _ = self._operations[place]
        if self._device is None:
            self._flight.take(ticket, vector.dtype, use)
        else:
            self._flight.take_on_device(ticket, self._device, lambda: use(vector))


def _fill(vector: torch.Tensor, factor: Factor) -> None:
    if not factor.has_new:
        vector.zero_()
        return
    triangle = vector[:-1]
    if devices.cuda.holds(factor.sum) == devices.cuda.holds(vector):
        factor.take_new(triangle)
    else:  # The sum is on a GPU that libbraid does not serve: the copy waits for it.
        triangle.copy_(factor.take_vector())
    vector[-1] = 1


def spread_matrix(factor: Factor, group: BraidProcessGroup, owner: int | None) -> torch.Tensor | None:
    """A factor that only its owner has, for all ranks, which call it together; None: it was not made yet."""
    weight = factor.layer.module.weight
    vector = torch.zeros(factor.elements + 1, dtype=factor.dtype, device=weight.device)
    if factor.average is not None:
        vector[:-1] = factor.average
        vector[-1] = 1
    group.broadcast([vector], root=owner).wait()
    return unpack(vector[:-1], factor.size) if vector[-1].item() == 1 else None
