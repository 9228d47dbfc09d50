# SPDX-License-Identifier: Apache-2.0
"""Gradients that an optimizer of braid reduces itself, so that nobody else does.

Under a DistributedDataParallel such a gradient stays what this rank has computed: the optimizer
hands it to the daemons, and what comes back are weights. Each DDP that knows claimed parameters
needs a communication hook for that: braid's own asks here, and one that has no hook gets one (see
changed.py).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from braid.torch.operations import devices

# By parameter, a weak reference to its claimant.
_claims: Any = WeakIdKeyDictionary()
# Every DDP of this process that was made since the first group of braid was, and what is to be done
# with one that knows claimed parameters.
_models: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = weakref.WeakKeyDictionary()


class Claimant:
    """A training method that reduces gradients itself, all the time or from some moment on."""

    def owns_gradients(self) -> bool:
        """Whether it does so in this step; the same on all ranks."""
        return True

    def meets_hook(self, text: str) -> None:
        """A DistributedDataParallel around its parameters has a hook of the script's."""
        raise RuntimeError(text)


def claim(claimant: Claimant, parameters: Iterable[torch.Tensor]) -> None:
    """Every DDP around the parameters gets what it needs. A claim ends with the claimant."""
    owner = weakref.ref(claimant)
    for parameter in parameters:
        _claims[parameter] = owner
    for model, prepare in list(_models.items()):
        prepare(model)


def is_claimed(parameter: torch.Tensor) -> bool:
    claimant = _claimant_of(parameter)
    return claimant is not None and claimant.owns_gradients()


def is_claimed_by(parameter: torch.Tensor, claimant: Claimant) -> bool:
    return _claimant_of(parameter) is claimant


def has_ddp() -> bool:
    """Whether there is any DistributedDataParallel in this process."""
    return bool(_models)


def ids_in_ddp() -> set[int]:
    """The ids of all parameters that a DistributedDataParallel has."""
    return {id(parameter) for model in list(_models) for parameter in model.parameters()}


def ddp_groups(parameters: Iterable[torch.Tensor]) -> list[Any]:
    """The process groups of every DDP that has one of these parameters."""
    wanted = {id(parameter) for parameter in parameters}
    return [
        model.process_group
        for model in list(_models)
        if any(id(parameter) in wanted for parameter in model.parameters())
    ]


def has_claims() -> bool:
    return bool(_claims)


def watch(model: Any, prepare: Callable[[Any], None]) -> None:
    """A DDP was made. `prepare` is called now, and whenever parameters are claimed."""
    _models[model] = prepare
    prepare(model)


def claimants_of(parameters: Iterable[torch.Tensor]) -> list[Claimant]:
    found = {id(c): c for p in parameters if (c := _claimant_of(p)) is not None}
    return list(found.values())


def keep_local(group: Any, bucket: Any) -> torch.futures.Future[torch.Tensor]:
    """A communication hook for a DDP on a group that is not braid's. It reduces what DDP would."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    if all(is_claimed(parameter) for parameter in bucket.parameters()):
        return ended(bucket.buffer())
    put_back = locals_of(bucket)
    return default_hooks.allreduce_hook(group, bucket).then(put_back)


def ended(buffer: torch.Tensor) -> torch.futures.Future[torch.Tensor]:
    """A future that has come."""
    future = devices.cuda.future(devices.cuda.devices_of(buffer))
    future.set_result(buffer)
    return future


def locals_of(bucket: Any) -> Callable[[torch.futures.Future[torch.Tensor]], torch.Tensor]:
    """Remembers the claimed gradients of a bucket that is about to be reduced as a whole. What it
    returns puts them back when that has come."""
    kept = [
        (gradient, gradient.clone())
        for parameter, gradient in zip(bucket.parameters(), bucket.gradients())
        if is_claimed(parameter)
    ]

    def put_back(future: torch.futures.Future[torch.Tensor]) -> torch.Tensor:
        for gradient, local in kept:
            gradient.copy_(local)
        return future.value()

    return put_back


def _claimant_of(parameter: torch.Tensor) -> Claimant | None:
    owner = _claims.get(parameter)
    return owner() if owner is not None else None
