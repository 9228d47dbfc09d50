# SPDX-License-Identifier: Apache-2.0
"""Makes scripts that ask for gloo, NCCL or MPI get braid, without a change to them."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any

from torch.distributed import distributed_c10d

from braid.torch.attach.delayed_scripts import wrap_optimizers
from braid.torch.attach.registration import register
from braid.torch.attach.replacing import replace_everywhere, substitute
from braid.torch.ddp.changed import plan_gradients

_log = logging.getLogger("braid")
_WRAPPED = ("init_process_group", "new_group", "new_subgroups", "new_subgroups_by_enumeration")


def enable() -> None:
    """From here on, process groups of this process are braid's, and DDP's gradients planned.

    A second call does nothing.
    """
    if getattr(distributed_c10d.init_process_group, "_braid", False):
        return
    register()
    for name in _WRAPPED:
        original = getattr(distributed_c10d, name)
        # For the default group no backend means "choose"; for others, "as the default group".
        replace_everywhere(name, original, _wrap(original, default=name == _WRAPPED[0]))
    wrap_optimizers()
    try:
        plan_gradients()
    except Exception as error:
        _log.warning("DistributedDataParallel is left as it is: %s", error, exc_info=True)


def _wrap(original: Callable[..., Any], *, default: bool) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            arguments = signature.bind(*args, **kwargs)
        except TypeError:
            return original(*args, **kwargs)  # Wrong arguments: the original says so best.
        backend = arguments.arguments.get("backend")
        if backend is not None:
            arguments.arguments["backend"] = substitute(backend)
        elif default:
            arguments.arguments["backend"] = "braid"
        return original(*arguments.args, **arguments.kwargs)

    wrapper._braid = True  # type: ignore[attr-defined]
    return wrapper
