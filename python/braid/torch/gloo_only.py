# SPDX-License-Identifier: Apache-2.0
"""What torch gives to its own backends only, given to braid's groups as well.

Nothing changes for other groups.
"""

from __future__ import annotations

import functools
import warnings
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.nn.parallel import DistributedDataParallel

from braid.torch.claims import note_builtin_hook, watch_ddp
from braid.torch.process_group import BraidProcessGroup
from braid.torch.replacing import replace_everywhere
from braid.torch.splitting import wrap_splitting


def open_to_braid() -> None:
    """A second call does nothing."""
    original = distributed_c10d.monitored_barrier
    if getattr(original, "_braid", False):
        return
    watch_ddp()
    wrap_splitting()
    _wrap_timeouts()
    replace_everywhere("monitored_barrier", original, _wrap_monitored_barrier(original))
    DistributedDataParallel._register_builtin_comm_hook = _wrap_builtin_hooks(
        DistributedDataParallel._register_builtin_comm_hook
    )


def _wrap_timeouts() -> None:
    """Older versions of torch set them for backends in C++ only; newer ones ask the group."""
    if hasattr(dist.ProcessGroup, "set_timeout"):
        return
    set_timeout = distributed_c10d._set_pg_timeout
    extend = distributed_c10d._add_ephemeral_timeout_for_all_pgs

    @functools.wraps(set_timeout)
    def _set_pg_timeout(timeout: timedelta, group: Any = None) -> None:
        chosen = distributed_c10d._get_default_group() if group is None else group
        if not isinstance(chosen, BraidProcessGroup):
            return set_timeout(timeout, group)
        return chosen.set_timeout(timeout)

    @functools.wraps(extend)
    def _add_ephemeral_timeout_for_all_pgs(timeout: timedelta) -> None:
        extend(timeout)
        for group in distributed_c10d._world.pg_map:
            if isinstance(group, BraidProcessGroup):
                group._add_ephemeral_timeout(timeout)

    replace_everywhere("_set_pg_timeout", set_timeout, _set_pg_timeout)
    replace_everywhere(extend.__name__, extend, _add_ephemeral_timeout_for_all_pgs)


def _wrap_monitored_barrier(original: Any) -> Any:
    """Older versions of torch ask for the backend's name, and take gloo's only."""

    @functools.wraps(original)
    def monitored_barrier(
        group: Any = None, timeout: Any = None, wait_all_ranks: bool = False
    ) -> Any:
        chosen = group
        if group is None and dist.is_initialized():
            chosen = distributed_c10d._get_default_group()
        if not isinstance(chosen, BraidProcessGroup):
            return original(group, timeout, wait_all_ranks)
        if isinstance(timeout, float):
            warnings.warn(f"monitored_barrier: {timeout} is taken for seconds", stacklevel=2)
            timeout = timedelta(seconds=timeout)
        return chosen.monitored_barrier(timeout, wait_all_ranks)

    monitored_barrier._braid = True  # type: ignore[attr-defined]
    return monitored_barrier


def _wrap_builtin_hooks(original: Any) -> Any:
    """The hooks in C++ take a future's value for a list made in C++, which no group made in Python
    can give. torch has the same hooks in Python."""

    @functools.wraps(original)
    def _register_builtin_comm_hook(self: Any, comm_hook_type: Any) -> None:
        note_builtin_hook(self)
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
        self.logger._set_comm_hook_name(str(comm_hook_type))
        # Not through the model's method: it is none of the script's own hooks, which are pickled.
        return dist._register_comm_hook(self.reducer, self.process_group, hook)

    return _register_builtin_comm_hook
