# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel's methods as braid changes them: all of them stand here.

From the first register() on every DDP is known, so that gradients which an optimizer of braid reduces
itself stay as they are (see claims.py), and DDP's built-in hooks work on braid's groups.

From enable() on the DDP hook comes under every DistributedDataParallel of a script that has never
heard of braid. DDP on a braid group gets buckets as small as pays (see tensor_sizes.py), so that what
is merged is the daemon's plan, and the hook just before its first forward pass, or before join()
shadows one. Where gradients go in two levels, buckets stay as they are. What the script does itself
comes first: a hook of its own stays and gets the script's buckets back (see own_buckets.py), and DDP
keeps its buckets where it needs them for something else.
Nothing here may break a script: what does not work is logged once, and leaves DDP as it is.
"""

from __future__ import annotations

import functools
import inspect
import logging
import weakref
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.nn.parallel import DistributedDataParallel

from braid.torch.environment.variables import is_on
from braid.torch.ddp import claims, own_buckets
from braid.torch.ddp.codecs import has_codecs
from braid.torch.ddp.hook import DDPHookState, ddp_hook
from braid.torch.ddp.tensor_sizes import smallest_tensor_bytes
from braid.torch.group.process_group import BraidProcessGroup
from braid.torch.operations import devices
from braid.torch.operations.untraced import untraced

_log = logging.getLogger("braid")

_MEBIBYTE = 1 << 20
# With one of these, DDP hooks itself up, uses its bucket sizes for something else, or does not
# reduce every bucket in every step.
_LEAVES_ALONE = (
    "mixed_precision",
    "delay_all_reduce_named_params",
    "skip_all_reduce_unused_params",
)

_TWICE = (
    "this DistributedDataParallel has a communication hook of its own, which reduces gradients that "
    "an optimizer of braid reduces too: leave out the hook, or the optimizer (what travels between "
    "nodes is encoded by the optimizer's argument codec)"
)

# Whether gradients of every DDP are to be planned: since enable().
_plans = False
# Hook states of models that wait for their first forward pass, and of models that have the hook.
_waiting: weakref.WeakKeyDictionary[Any, DDPHookState] = weakref.WeakKeyDictionary()
_attached: weakref.WeakKeyDictionary[Any, DDPHookState] = weakref.WeakKeyDictionary()
# Those that got a hook for claimed gradients, and those that have one of torch's built-in hooks, which
# leaves no other trace.
_hooked: weakref.WeakSet[Any] = weakref.WeakSet()
_with_builtin_hook: weakref.WeakSet[Any] = weakref.WeakSet()


def watch_ddp() -> None:
    """From here on every DistributedDataParallel of this process is known. Called once."""
    ddp = DistributedDataParallel
    ddp.__init__ = _wrap_init(ddp.__init__)
    ddp.register_comm_hook = _wrap_register(ddp.register_comm_hook)
    ddp._register_builtin_comm_hook = _wrap_builtin(ddp._register_builtin_comm_hook)


def plan_gradients() -> None:
    """From here on, those of every DistributedDataParallel that is made. After watch_ddp()."""
    global _plans
    ddp = DistributedDataParallel
    # Looked up first: another torch may have other insides, and then nothing is changed.
    lazy_init, join_hook = ddp._lazy_init, ddp.join_hook
    ddp._lazy_init = _wrap_lazy_init(lazy_init)
    ddp.join_hook = _wrap_join_hook(join_hook)
    _plans = True


def _wrap_init(original: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        changed = _guarded(_with_fitting_buckets, signature, self, args, kwargs) if _plans else None
        if changed is None:
            original(self, *args, **kwargs)
        else:
            bound, chosen = changed
            original(*bound.args, **bound.kwargs)
            _guarded(_prepare, self, *chosen)
        claims.watch(self, _leave_claimed)

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
        _refuse_hook(self)
        if self in _attached:
            self._check_comm_hook(hook)
            self._comm_hooks.append((hook, state))
            _replace_ours(self, functools.partial(_register, state=state, hook=hook), state, hook)
            return
        if hook is not ddp_hook:
            _guarded(own_buckets.give_back, self)
        original(self, state, hook)

    return register_comm_hook


def _wrap_builtin(original: Callable[..., None]) -> Callable[..., None]:
    """torch's hooks in C++ take a future's value for a list made in C++, which no group made in Python
    can give. torch has the same hooks in Python."""

    @functools.wraps(original)
    def _register_builtin_comm_hook(self: Any, comm_hook_type: Any) -> None:
        _refuse_hook(self)
        _with_builtin_hook.add(self)
        if not isinstance(self.process_group, BraidProcessGroup):
            return original(self, comm_hook_type)
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        hooks = {
            "ALLREDUCE": default_hooks.allreduce_hook,
            "FP16_COMPRESS": default_hooks.fp16_compress_hook,
        }
        hook = hooks.get(comm_hook_type.name)
        if hook is None:
            raise ValueError(f"DDP over braid has no built-in hook {comm_hook_type.name}")
        register = functools.partial(_register_of_torch, hook=hook)
        if self in _attached:
            return _replace_ours(self, register, self.process_group, hook)
        _guarded(own_buckets.give_back, self)
        self.logger._set_comm_hook_name(str(comm_hook_type))
        return register(self)

    return _register_builtin_comm_hook


def _replace_ours(
    model: Any, register: Callable[[Any], None], state: object, hook: Callable[..., Any]
) -> None:
    """At once, and with the script's buckets from the next forward pass on. Until then the model is
    pickled with `register`."""
    _attached.pop(model).replace(functools.partial(hook, state))
    own_buckets.give_back_later(model, register)


def _register(model: Any, state: object, hook: Callable[..., Any]) -> None:
    dist._register_comm_hook(model.reducer, state, hook)


def _register_of_torch(model: Any, hook: Callable[..., Any]) -> None:
    # Not through the model's method: it is none of the script's own hooks, which are pickled.
    dist._register_comm_hook(model.reducer, model.process_group, hook)


def _refuse_hook(model: Any) -> None:
    """A hook of the script's is about to be put under a DDP."""
    for claimant in claims.claimants_of(model.parameters()):
        claimant.meets_hook(_TWICE)


def _leave_claimed(model: Any) -> None:
    """Sees to it that a DDP leaves claimed gradients alone."""
    claimants = claims.claimants_of(model.parameters()) if claims.has_claims() else []
    if not claimants or model in _hooked:
        return
    if model._comm_hooks or model in _with_builtin_hook:
        for claimant in claimants:
            claimant.meets_hook(_TWICE)
        return
    if model in _waiting or model in _attached:
        return  # braid's hook asks whose gradients are claimed.
    # Not through the model's method, which would keep the hook in what is pickled of the model.
    if isinstance(model.process_group, BraidProcessGroup):
        dist._register_comm_hook(model.reducer, DDPHookState(model), ddp_hook)
    else:
        dist._register_comm_hook(model.reducer, model.process_group, claims.keep_local)
    _hooked.add(model)


def _with_fitting_buckets(
    signature: inspect.Signature, model: Any, args: Any, kwargs: Any
) -> tuple[inspect.BoundArguments, tuple[float | None, Any]] | None:
    """The constructor's arguments, with small buckets where gradients are planned, and the sizes that
    the script chose."""
    try:
        bound = signature.bind(model, *args, **kwargs)
    except TypeError:
        return None  # Wrong arguments: the constructor says so best.
    given = bound.arguments
    if is_on("BRAID_KEEP_BUCKETS") or any(given.get(name) for name in _LEAVES_ALONE):
        return None
    group = _group_of(given)
    if not isinstance(group, BraidProcessGroup):
        return None
    chosen = given.get("bucket_cap_mb"), given.get("bucket_cap_mb_list")
    trained = [p for p in given["module"].parameters() if p.requires_grad]
    if _go_in_two_levels(group, given["module"], trained):
        return bound, chosen
    # A bucket is full with the parameter that brings it up to this: one byte, and it holds one.
    bytes_min = max(1, smallest_tensor_bytes(group, trained))
    given.pop("bucket_cap_mb_list", None)
    given["bucket_cap_mb"] = bytes_min / _MEBIBYTE
    return bound, chosen


def _go_in_two_levels(group: BraidProcessGroup, module: Any, trained: list[Any]) -> bool:
    """Whether gradients stay in DDP's buckets (see hook.py), which are then those of the script."""
    on = devices.cuda.devices_of(trained)
    if len(on) != 1 or has_codecs(module):
        return False
    return group.engine.on_devices.goes_in_two_levels(on[0])


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
