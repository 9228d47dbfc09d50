# SPDX-License-Identifier: Apache-2.0
"""Gradients that an optimizer of braid reduces itself, so that nobody else does.

Under a DistributedDataParallel such a gradient stays what this rank has computed: the optimizer
hands it to the daemons, and what comes back are weights. Each DDP that knows claimed parameters
needs a communication hook for that: braid's own asks here, and one that has no hook gets one.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.weak import WeakIdKeyDictionary

# By parameter: whether its claim holds at this moment. Weak, so that a claim ends with its optimizer.
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


def claim(optimizer: Any, parameters: Sequence[torch.Tensor]) -> None:
    """`optimizer.owns_gradients()` is asked whenever it matters; a claim ends with the optimizer.

    Every DDP around the parameters gets what it needs. Raises where it has a hook of the script's.
    """
    owner = weakref.ref(optimizer)
    for parameter in parameters:
        _claims[parameter] = owner
    for model in list(_models):
        _prepare(model)


def is_claimed(parameter: torch.Tensor) -> bool:
    owner = _claims.get(parameter)
    optimizer = owner() if owner is not None else None
    return optimizer is not None and optimizer.owns_gradients()


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


def any_claimed(parameters: Iterable[torch.Tensor]) -> bool:
    return bool(_claims) and any(is_claimed(parameter) for parameter in parameters)


def watch_ddp() -> None:
    """From here on, every DDP that is made is known. A second call does nothing."""
    original = DistributedDataParallel.__init__
    if getattr(original, "_braid_watched", False):
        return

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        _models.add(self)
        if any_claimed(self.parameters()):
            _prepare(self)

    __init__._braid_watched = True  # type: ignore[attr-defined]
    DistributedDataParallel.__init__ = __init__


def note_builtin_hook(model: Any) -> None:
    """A hook of torch in C++ is about to be put under a DDP."""
    refuse_hook(model)
    _with_builtin_hook.add(model)


def refuse_hook(model: Any) -> None:
    """Raises where a hook of the script's would reduce claimed gradients."""
    if any_claimed(model.parameters()):
        raise RuntimeError(_TWICE)


def keep_local(state: Any, bucket: Any) -> torch.futures.Future[torch.Tensor]:
    """A communication hook that reduces nothing, for a DDP all of whose parameters are claimed."""
    if not all(is_claimed(parameter) for parameter in bucket.parameters()):
        raise RuntimeError(
            "the optimizer of braid that reduced the gradients of a DistributedDataParallel is "
            "gone: wrap the model in a new one for another optimizer"
        )
    return ended(bucket.buffer())


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


def _prepare(model: Any) -> None:
    """Sees to it that a DDP leaves claimed gradients alone."""
    from braid.torch import small_buckets
    from braid.torch.hook import DDPHookState, ddp_hook
    from braid.torch.process_group import BraidProcessGroup

    parameters = [p for p in model.parameters() if p.requires_grad]
    if not any_claimed(parameters):
        return
    if model._comm_hooks or model in _with_builtin_hook:
        raise RuntimeError(_TWICE)
    if model in _hooked or small_buckets.is_hooked(model):
        return
    if isinstance(model.process_group, BraidProcessGroup):
        state, hook = DDPHookState(model), ddp_hook
    elif all(is_claimed(parameter) for parameter in parameters):
        state, hook = None, keep_local
    else:
        raise RuntimeError(
            "an optimizer of braid has some of the parameters of a DistributedDataParallel on a "
            f"group of {type(model.process_group).__name__}, and not all: give it all, or wrap "
            "the model on a group of the backend braid"
        )
    # Not through the model's method, which would keep the hook in what is pickled of the model.
    dist._register_comm_hook(model.reducer, state, hook)
    _hooked.add(model)
