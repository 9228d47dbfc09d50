# SPDX-License-Identifier: Apache-2.0
"""A set of planned tensors: how it is registered, where its inputs lie, and where its results do.

The daemon may merge neighbours of a set into one reduction, by a plan that it makes from what it sees:
when each tensor is ready, step after step. For that every tensor has one number per step, all of them
are submitted in every step, and none is waited for before the last one is there. Inputs lie one after
the other in backward order, so that merging them copies nothing.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch

from braid import BraidError, Job, Memory, TensorSpec
from braid.torch.operations.carriage import dtype_of

_log = logging.getLogger("braid")

# Planned tensors of one set.
TENSORS_MAX = 3000


class Form(NamedTuple):
    """What is registered of a tensor: its name on all ranks, its elements, how it travels."""

    name: str
    dtype: torch.dtype
    count: int
    codec: str = ""


def register(job: Job, forms: Iterable[Form], state_slots: int = 0) -> list[int]:
    """The handles of a set, all or none. `forms` are in backward order."""
    return job.register(
        [
            TensorSpec(form.name, dtype_of(form.dtype), form.count, place, planned=True,
                       codec=form.codec, state_slots=state_slots)
            for place, form in enumerate(forms)
        ]
    )  # fmt: skip


def unregister(job: Job, handles: Sequence[int]) -> None:
    """A whole set. Where that cannot be it stays, and nothing depends on it: an error may have left
    an operation of its tensors that nobody waits for."""
    try:
        job.unregister(handles)
    except BraidError as error:
        _log.debug("%d tensors of job %s stay: %s", len(handles), job.name, error)


class Place(NamedTuple):
    """The place of one tensor's input: a vector for its values, and the same memory for the daemon."""

    view: torch.Tensor
    memory: Memory


def lay_out(forms: Iterable[Form], take: Callable[[int], Memory]) -> list[Place]:
    """A place for each input of a set, all in one block of so many bytes, which `take` gives."""
    spans, end = [], 0
    for form in forms:
        itemsize = form.dtype.itemsize
        begin = -(-end // itemsize) * itemsize
        end = begin + form.count * itemsize
        spans.append((begin, end, form.dtype))
    block = take(max(1, end))
    whole = _tensor_at(block.address, block.nbytes, torch.uint8)
    return [
        Place(whole[begin:end].view(dtype), Memory(block.address + begin, end - begin))
        for begin, end, dtype in spans
    ]


def result_of(job: Job, ticket: int, dtype: torch.dtype) -> torch.Tensor:
    """In the daemon's memory: to be read, until the ticket is released."""
    return _tensor_at(*job.result_address(ticket), dtype)


def _tensor_at(address: int, nbytes: int, dtype: torch.dtype) -> torch.Tensor:
    if nbytes == 0:
        return torch.empty(0, dtype=dtype)
    return torch.frombuffer((ctypes.c_ubyte * nbytes).from_address(address), dtype=dtype)
