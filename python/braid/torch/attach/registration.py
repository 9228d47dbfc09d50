# SPDX-License-Identifier: Apache-2.0
"""Makes "braid" a backend of torch.distributed, with what torch gives to its own backends only.

Nothing changes for groups of other backends.
"""

from __future__ import annotations

import functools
import warnings
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d

from braid.torch.attach.replacing import replace_everywhere
from braid.torch.attach.splitting import wrap_splitting
from braid.torch.ddp.changed import watch_ddp
from braid.torch.group.creation import create_group
from braid.torch.group.naming import described
from braid.torch.group.process_group import BraidProcessGroup


def register() -> None:
    """After this, init_process_group("braid") works. A second call does nothing."""
    if "braid" not in dist.Backend.backend_list:
        dist.Backend.register_backend("braid", create_group, devices=["cpu", "cuda"])
    helper = distributed_c10d._new_process_group_helper
    if not getattr(helper, "_braid", False):
        distributed_c10d._new_process_group_helper = described(helper)
    original = distributed_c10d.monitored_barrier
    if getattr(original, "_braid", False):
        return
    watch_ddp()
    wrap_splitting()
    _wrap_timeouts()
    replace_everywhere("monitored_barrier", original, _wrap_monitored_barrier(original))


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
