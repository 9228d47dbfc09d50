# SPDX-License-Identifier: Apache-2.0
"""Steps that a torch.amp.GradScaler leaves out, where ranks see gradients of their own.

A scaler leaves out a step if it finds an infinity. Behind DistributedDataParallel all ranks find the
same. Where each rank has its own gradients, one rank may find one alone, and from then on ranks would
be in different steps.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.distributed import ReduceOp


class _Watched(NamedTuple):
    group_of: Callable[[], Any]
    left_out: Callable[[], None] | None


# By optimizer, and as long as that lives.
_watched: weakref.WeakKeyDictionary[Any, _Watched] = weakref.WeakKeyDictionary()


def watch_scaler(
    optimizer: torch.optim.Optimizer,
    group_of: Callable[[], Any],
    left_out: Callable[[], None] | None = None,
) -> None:
    """A step of `optimizer` is left out on all ranks of group_of() or on none; None: each rank by
    itself. `left_out` is called for each one. Neither may hold the optimizer."""
    _wrap_scaler()
    _watched[optimizer] = _Watched(group_of, left_out)


def _wrap_scaler() -> None:
    """A second call does nothing."""
    scaler = torch.amp.GradScaler
    if getattr(scaler._unscale_grads_, "_braid", False):
        return
    scaler._unscale_grads_ = _wrap_unscale(scaler._unscale_grads_)
    scaler._maybe_opt_step = _wrap_step(scaler._maybe_opt_step)


def _wrap_unscale(original: Any) -> Any:
    """Once for each step, and before it is decided."""

    @functools.wraps(original)
    def _unscale_grads_(
        self: Any, optimizer: Any, inv_scale: Any, found_inf: torch.Tensor, allow_fp16: bool
    ) -> dict[torch.device, torch.Tensor]:
        found = original(self, optimizer, inv_scale, found_inf, allow_fp16)
        watched = _watched.get(optimizer)
        group = None if watched is None else watched.group_of()
        if group is not None:
            if not found:  # No gradient here.
                found[found_inf.device] = found_inf
            anywhere = torch.tensor([max(float(each.item()) for each in found.values())])
            group.allreduce([anywhere], ReduceOp.MAX).wait()
            for each in found.values():
                each.fill_(anywhere.item())
        return found

    _unscale_grads_._braid = True  # type: ignore[attr-defined]
    return _unscale_grads_


def _wrap_step(original: Any) -> Any:
    @functools.wraps(original)
    def _maybe_opt_step(
        self: Any, optimizer: Any, optimizer_state: Any, *args: Any, **kwargs: Any
    ) -> Any:
        watched = _watched.get(optimizer)
        if watched is not None and watched.left_out is not None:
            if any(each.item() for each in optimizer_state["found_inf_per_device"].values()):
                watched.left_out()
        return original(self, optimizer, optimizer_state, *args, **kwargs)

    return _maybe_opt_step
