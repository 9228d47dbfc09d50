# SPDX-License-Identifier: Apache-2.0
"""Puts the DDP hook under every DistributedDataParallel of a script that has never heard of braid.

DDP on a braid group gets buckets as small as pays (see tensor_sizes.py), so that what is merged is
the daemon's plan, and the hook just before its first forward pass, or before join() shadows one.
What the script does itself comes first: a hook of its own stays and gets the script's buckets back (see
own_buckets.py), and DDP keeps its buckets where it needs them for something else. Nothing here may
break a script: what does not work is logged once, and leaves DDP as it is.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import weakref
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.nn.parallel import DistributedDataParallel

from braid.torch import own_buckets
from braid.torch.claims import refuse_hook
from braid.torch.hook import DDPHookState, ddp_hook
from braid.torch.process_group import BraidProcessGroup
from braid.torch.tensor_sizes import smallest_tensor_bytes
from braid.torch.untraced import untraced

_log = logging.getLogger("braid")
_OFF = ("", "0", "false", "no", "off")

_MEBIBYTE = 1 << 20
# With one of these, DDP hooks itself up, uses its bucket sizes for something else, or does not
# reduce every bucket in every step.
_LEAVES_ALONE = (
    "mixed_precision",
    "delay_all_reduce_named_params",
    "skip_all_reduce_unused_params",
)

# Of models that wait for their first forward pass, and of those that have the hook.
_waiting: weakref.WeakKeyDictionary[Any, DDPHookState] = weakref.WeakKeyDictionary()
_attached: weakref.WeakKeyDictionary[Any, DDPHookState] = weakref.WeakKeyDictionary()


def keeps_buckets() -> bool:
    """BRAID_KEEP_BUCKETS=1: the script's buckets, and no hook."""
    return os.environ.get("BRAID_KEEP_BUCKETS", "").lower() not in _OFF


def is_hooked(model: Any) -> bool:
    """Whether braid's hook is under this model, or will be before its first forward pass."""
    return model in _waiting or model in _attached


def wrap_ddp() -> None:
    """From here on, for every DistributedDataParallel of this process."""
    if getattr(DistributedDataParallel.__init__, "_braid", False):
        return
    # Looked up first: another torch may have other insides, and then nothing is changed.
    lazy_init = DistributedDataParallel._lazy_init
    join_hook = DistributedDataParallel.join_hook
    register_comm_hook = DistributedDataParallel.register_comm_hook
    register_builtin = DistributedDataParallel._register_builtin_comm_hook
    DistributedDataParallel.__init__ = _wrap_init(DistributedDataParallel.__init__)
    DistributedDataParallel._lazy_init = _wrap_lazy_init(lazy_init)
    DistributedDataParallel.join_hook = _wrap_join_hook(join_hook)
    DistributedDataParallel.register_comm_hook = _wrap_register(register_comm_hook)
    DistributedDataParallel._register_builtin_comm_hook = _wrap_builtin(register_builtin)


def _wrap_init(original: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        changed = _guarded(_with_small_buckets, signature, self, args, kwargs)
        if changed is None:
            original(self, *args, **kwargs)
            return
        bound, chosen = changed
        original(*bound.args, **bound.kwargs)
        _guarded(_prepare, self, *chosen)

    __init__._braid = True  # type: ignore[attr-defined]
    return __init__


def _wrap_lazy_init(original: Callable[..., None]) -> Callable[..., None]:
    """DDP calls it once, before its first forward pass."""

    @untraced
    @functools.wraps(original)
    def _lazy_init(self: Any) -> None:
        original(self)
        _attach_if_waiting(self)

    return _lazy_init


def _wrap_join_hook(original: Callable[..., Any]) -> Callable[..., Any]:
    """join() calls it on every rank, also where no forward pass comes before the shadows of one."""

    @functools.wraps(original)
    def join_hook(self: Any, **kwargs: Any) -> Any:
        _attach_if_waiting(self)
        return original(self, **kwargs)

    return join_hook


def _wrap_register(original: Callable[..., None]) -> Callable[..., None]:
    """DDP takes one hook. One that the script registers after ours replaces it."""

    @functools.wraps(original)
    def register_comm_hook(self: Any, state: object, hook: Callable[..., Any]) -> None:
        refuse_hook(self)
        ours = _attached.get(self)
        if ours is None:
            if hook is not ddp_hook:
                _guarded(own_buckets.give_back, self)
            original(self, state, hook)
            return
        self._check_comm_hook(hook)
        del _attached[self]
        self._comm_hooks.append((hook, state))
        ours.replace(functools.partial(hook, state))
        own_buckets.give_back_later(self, "_register_comm_hook", state, hook)

    return register_comm_hook


def _wrap_builtin(original: Callable[..., None]) -> Callable[..., None]:
    """The same for the hooks that torch has in C++."""

    @functools.wraps(original)
    def _register_builtin_comm_hook(self: Any, comm_hook_type: Any) -> None:
        if _attached.pop(self, None) is None:
            _guarded(own_buckets.give_back, self)
            original(self, comm_hook_type)
        else:
            own_buckets.give_back_later(self, "_register_builtin_comm_hook", comm_hook_type)

    return _register_builtin_comm_hook


def _with_small_buckets(
    signature: inspect.Signature, model: Any, args: Any, kwargs: Any
) -> tuple[inspect.BoundArguments, tuple[float | None, Any]] | None:
    """The constructor's arguments with small buckets, and the sizes that the script chose."""
    try:
        bound = signature.bind(model, *args, **kwargs)
    except TypeError:
        return None  # Wrong arguments: the constructor says so best.
    given = bound.arguments
    if keeps_buckets() or any(given.get(name) for name in _LEAVES_ALONE):
        return None
    group = _group_of(given)
    if not isinstance(group, BraidProcessGroup):
        return None
    trained = [p for p in given["module"].parameters() if p.requires_grad]
    # A bucket is full with the parameter that brings it up to this: one byte, and it holds one.
    bytes_min = max(1, smallest_tensor_bytes(group, trained))
    chosen = given.get("bucket_cap_mb"), given.pop("bucket_cap_mb_list", None)
    given["bucket_cap_mb"] = bytes_min / _MEBIBYTE
    return bound, chosen


def _group_of(given: dict[str, Any]) -> Any:
    """The process group that DDP will use; None if it will complain about the lack of one."""
    if given.get("process_group") is not None:
        return given["process_group"]
    if given.get("device_mesh") is not None:
        return given["device_mesh"].get_group(mesh_dim=0)
    return distributed_c10d._get_default_group() if dist.is_initialized() else None


def _prepare(model: Any, bucket_cap_mb: float | None, bucket_cap_mb_list: Any) -> None:
    if model._use_python_reducer:
        return  # torch.compile reduces gradients in its graphs.
    own_buckets.remember(model, bucket_cap_mb, bucket_cap_mb_list)
    # All ranks make their models in one order; they need not run them in one order first.
    _waiting[model] = DDPHookState(model)


def _attach_if_waiting(model: Any) -> None:
    state = _waiting.pop(model, None)
    if state is not None:
        _guarded(_attach, model, state)


def _attach(model: Any, state: DDPHookState) -> None:
    if model._comm_hooks:
        return  # The script's own.
    try:
        # Not through the model's method, which would keep the hook in what is pickled of the model.
        dist._register_comm_hook(model.reducer, state, ddp_hook)
    except RuntimeError as error:
        # A built-in hook of torch leaves no other trace than this refusal.
        _log.info("DDP keeps the hook that it has: %s", error)
        return
    model.logger._set_comm_hook_name(ddp_hook.__qualname__)
    _attached[model] = state


_told: set[str] = set()


def _guarded(function: Callable[..., Any], *args: Any) -> Any:
    """None where `function` fails: that costs the plan, not the script."""
    try:
        return function(*args)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if text not in _told:
            _told.add(text)
            _log.warning("DistributedDataParallel is left as it is: %s", text, exc_info=True)
        return None
