# SPDX-License-Identifier: Apache-2.0
"""Gradients that an optimizer of braid reduces itself, so that nobody else does.

Under a DistributedDataParallel such a gradient stays what this rank has computed: the optimizer
hands it to the daemons, and what comes back are weights. Each DDP that knows claimed parameters
needs a communication hook for that: braid's own asks here, and one that has no hook gets one.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.weak import WeakIdKeyDictionary

# By parameter, a weak reference to its claimant.
_claims: Any = WeakIdKeyDictionary()
# Every DDP of this process that was made since the first group of braid was.
_models: weakref.WeakSet[Any] = weakref.WeakSet()
# Those that got a hook here, and those that have one of torch's in C++, which leaves no other trace.
_hooked: weakref.WeakSet[Any] = weakref.WeakSet()
_with_builtin_hook: weakref.WeakSet[Any] = weakref.WeakSet()

_TWICE = (
    "this DistributedDataParallel has a communication hook of its own, which reduces gradients that "
    "an optimizer of braid reduces too: leave out the hook, or the optimizer (what travels between "
    "nodes is encoded by the optimizer's argument codec)"
)


class Claimant:
    """Whoever reduces gradients itself, all the time or from some moment on."""

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
    for model in list(_models):
        _prepare(model)


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


def watch_ddp() -> None:
    """From here on, every DDP that is made is known. A second call does nothing."""
    original = DistributedDataParallel.__init__
    if getattr(original, "_braid_watched", False):
        return

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        _models.add(self)
        _prepare(self)

    __init__._braid_watched = True  # type: ignore[attr-defined]
    DistributedDataParallel.__init__ = __init__


def note_builtin_hook(model: Any) -> None:
    """A hook of torch in C++ is about to be put under a DDP."""
    refuse_hook(model)
    _with_builtin_hook.add(model)


def refuse_hook(model: Any) -> None:
    """A hook of the script's is about to be put under a DDP."""
    for claimant in _claimants_of(model.parameters()):
        claimant.meets_hook(_TWICE)


def keep_local(group: Any, bucket: Any) -> torch.futures.Future[torch.Tensor]:
    """A communication hook for a DDP on a group that is not braid's. It reduces what DDP would."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    if all(is_claimed(parameter) for parameter in bucket.parameters()):
        return ended(bucket.buffer())
    put_back = locals_of(bucket)
    averaged = default_hooks.allreduce_hook(group, bucket)
    if put_back is None:
        return averaged

    def restore(future: torch.futures.Future[torch.Tensor]) -> torch.Tensor:
        put_back()
        return future.value()

    return averaged.then(restore)


def ended(buffer: torch.Tensor) -> torch.futures.Future[torch.Tensor]:
    """A future that has come."""
    devices = [buffer.device] if buffer.is_cuda else None
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future(devices=devices)
    future.set_result(buffer)
    return future


def locals_of(bucket: Any) -> Callable[[], None] | None:
    """Remembers the claimed gradients of a bucket that is about to be reduced as a whole.

    What it returns puts them back; None: there are none.
    """
    kept = [
        (gradient, gradient.clone())
        for parameter, gradient in zip(bucket.parameters(), bucket.gradients())
        if is_claimed(parameter)
    ]
    if not kept:
        return None

    def put_back() -> None:
        for gradient, local in kept:
            gradient.copy_(local)

    return put_back


def _claimant_of(parameter: torch.Tensor) -> Claimant | None:
    owner = _claims.get(parameter)
    return owner() if owner is not None else None


def _claimants_of(parameters: Iterable[torch.Tensor]) -> list[Claimant]:
    found = {id(c): c for p in parameters if (c := _claimant_of(p)) is not None}
    return list(found.values())


def _prepare(model: Any) -> None:
    """Sees to it that a DDP leaves claimed gradients alone."""
    from braid.torch import small_buckets
    from braid.torch.hook import DDPHookState, ddp_hook
    from braid.torch.process_group import BraidProcessGroup

    claimants = _claimants_of(model.parameters()) if has_claims() else []
    if not claimants or model in _hooked:
        return
    if model._comm_hooks or model in _with_builtin_hook:
        for claimant in claimants:
            claimant.meets_hook(_TWICE)
        return
    if small_buckets.is_hooked(model):
        return
    # Not through the model's method, which would keep the hook in what is pickled of the model.
    if isinstance(model.process_group, BraidProcessGroup):
        dist._register_comm_hook(model.reducer, DDPHookState(model), ddp_hook)
    else:
        dist._register_comm_hook(model.reducer, model.process_group, keep_local)
    _hooked.add(model)
