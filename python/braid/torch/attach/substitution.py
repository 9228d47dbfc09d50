# SPDX-License-Identifier: Apache-2.0
"""Makes scripts that ask for gloo, NCCL or MPI get braid, without a change to them."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any

from torch.distributed import distributed_c10d

from braid.torch.environment import last_words, logs
from braid.torch.attach.delayed_scripts import is_asked_for, wrap_optimizers
from braid.torch.attach.registration import register
from braid.torch.attach.replacing import replace_everywhere, substitute
from braid.torch.environment.codec_check import check_codec
from braid.torch.environment.variables import check_switches
from braid.torch.attach.within_nodes import default_keeps_nccl, kept_backend, note, note_default
from braid.torch.ddp.changed import plan_gradients

_log = logging.getLogger("braid")


def enable() -> None:
    """From here on, process groups of this process are braid's, and DDP's gradients planned.

    Groups within one node that ask for NCCL keep it (see within_nodes.py).
    A second call does nothing. WrongVariable: a variable of the environment cannot be understood.
    """
    if getattr(distributed_c10d.init_process_group, "_braid", False):
        return
    last_words.install()
    check_switches()
    check_codec()
    logs.set_up()
    logs.tell_unknown_variables()
    register()
    # All of torch's functions that make groups go through these, or through split_group().
    for wrap, original in (
        (_wrap_init, distributed_c10d.init_process_group),
        (_wrap_new, distributed_c10d.new_group),
    ):
        replace_everywhere(original.__name__, original, wrap(original))
    wrap_optimizers()
    try:
        plan_gradients()
    except Exception as error:
        _log.warning("DistributedDataParallel is left as it is: %s", error, exc_info=True)


def _wrap_init(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        try:
            arguments = signature.bind(*args, **kwargs)
        except TypeError:
            return original(*args, **kwargs)  # Wrong arguments: the original says so best.
        given = arguments.arguments
        asked = given.get("backend")
        # What is delayed has to be braid's.
        keeps_nccl = not is_asked_for() and default_keeps_nccl(asked, given.get("world_size"))
        if not keeps_nccl:
            given["backend"] = "braid" if asked is None else substitute(asked)
        made = original(*arguments.args, **arguments.kwargs)
        note_default(asked, keeps_nccl=keeps_nccl)
        return made

    init_process_group._braid = True  # type: ignore[attr-defined]
    return init_process_group


def _wrap_new(original: Callable[..., Any]) -> Callable[..., Any]:
    """Without a backend a group is as the default group."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def new_group(*args: Any, **kwargs: Any) -> Any:
        try:
            arguments = signature.bind(*args, **kwargs)
        except TypeError:
            return original(*args, **kwargs)
        given = arguments.arguments
        asked = given.get("backend")
        kept = kept_backend(asked, given.get("ranks"))
        if kept is not None:
            given["backend"] = kept
        elif asked is not None:
            given["backend"] = substitute(asked)
        made = original(*arguments.args, **arguments.kwargs)
        note(made, asked)
        return made

    return new_group
