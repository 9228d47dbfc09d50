# SPDX-License-Identifier: Apache-2.0
"""Operations of planned tensors that are on their way together, and how their results are taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from braid import BraidError
from braid.torch.operations import devices
from braid.torch.operations.engine import Engine
from braid.torch.operations.failures import as_distributed
from braid.torch.operations.flight_record import Entry
from braid.torch.planned.tensors import result_of


class Flight:
    """Operations of one engine. Each ticket is taken once, in any order; `error` is the first error."""

    __slots__ = ("engine", "entry", "error")

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.entry: Entry | None = None
        self.error: Exception | None = None

    def take(
        self, ticket: int, dtype: torch.dtype, use: Callable[..., None] | None, *arguments: Any
    ) -> None:
        """Waits for an operation, hands its result to `use` as a vector in the daemon's memory, and
        gives it back. After an error no result is used."""
        try:
            self._wait(ticket)
            if use is not None and self.error is None:
                use(result_of(self.engine.job, ticket, dtype), *arguments)
        except Exception as cause:
            self.fail(cause)
        self.release(ticket)

    def take_into(self, ticket: int, address: int, nbytes: int) -> None:
        """The same with a copy of the whole result, in one call of libbraid. Before any error."""
        try:
            self.engine.take(ticket, address, nbytes)
        except Exception as cause:
            self.fail(cause)
            self.release(ticket)

    def take_on_device(
        self, ticket: int, device: torch.device, use: Callable[[], None] | None
    ) -> None:
        """take() of an operation on a GPU's memory: waits until its result is in the CPU's memory. What
        `use` queues comes behind the copy to the GPU, which is queued on the current stream."""
        try:
            self._wait(ticket)
            if use is not None and self.error is None:
                devices.cuda.let_wait(
                    self.engine.job, ticket, devices.cuda.current_stream(device)
                )
                use()
        except Exception as cause:
            self.fail(cause)
        self.release(ticket, on_device=True)

    def release(self, ticket: int, *, on_device: bool = False) -> None:
        job = self.engine.job
        try:
            job.device_release(ticket) if on_device else job.release(ticket)
        except BraidError as cause:
            self.fail(cause)

    def fail(self, cause: Exception) -> None:
        if self.error is None:
            self.error = self._told(cause) if isinstance(cause, BraidError) else cause

    def end_entry(self) -> None:
        """In the flight record."""
        if self.entry is not None:
            self.entry.end(self.error)

    def _wait(self, ticket: int) -> None:
        self.engine.wait(ticket)

    def _told(self, cause: BraidError) -> Exception:
        return as_distributed(cause)
