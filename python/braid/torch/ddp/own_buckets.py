# SPDX-License-Identifier: Apache-2.0
"""Gives a DistributedDataParallel the buckets that its script chose, after it was made with others.

A hook of the script's own works on buckets, and may keep state by them (PowerSGD does), so they have
to be those that the script asked for. DDP cannot change them later; its reducer, which holds them,
is made again, in the way in which DDP makes one when it is unpickled.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

import torch

from braid.torch.operations.untraced import untraced

_log = logging.getLogger("braid")
_MEBIBYTE = 1024 * 1024
_DEFAULT_BUCKET_CAP_MB = 25

# For models whose buckets are not those of the script: the parameters that DDP reduces, as they were
# when it was made, and whether their gradients are sparse.
_parameters: weakref.WeakKeyDictionary[Any, tuple[list[torch.Tensor], list[bool]]] = (
    weakref.WeakKeyDictionary()
)


def remember(model: Any, bucket_cap_mb: float | None, bucket_cap_mb_list: Any) -> None:
    """What the script chose for a model that was just made: in its attributes, and for later.

    torch.compile reads these attributes, too: it cuts its graphs where buckets end.
    """
    _parameters[model] = model._build_params_for_reducer()
    cap_mb = _DEFAULT_BUCKET_CAP_MB if bucket_cap_mb is None else bucket_cap_mb
    if hasattr(model, "_bucket_config"):
        config = type(model._bucket_config).create(
            bucket_cap_mb=bucket_cap_mb,
            bucket_cap_mb_list=bucket_cap_mb_list,
            use_python_reducer=False,
        )
        model._bucket_config = config
        model.bucket_bytes_cap = config.bucket_bytes_cap
        model.bucket_bytes_cap_list = list(config.per_bucket_bytes_caps)
        model.bucket_bytes_cap_default = config.first_bucket_bytes_cap < config.bucket_bytes_cap
    else:
        model.bucket_bytes_cap = int(cap_mb * _MEBIBYTE)
        model.bucket_bytes_cap_default = bucket_cap_mb is None


def give_back(model: Any) -> None:
    """Between iterations: the reducer is a new one, without a hook, and begins anew."""
    remembered = _parameters.pop(model, None)
    if remembered is None:
        return
    parameters, expect_sparse_gradient = remembered
    model._ddp_init_helper(
        parameters,
        expect_sparse_gradient,
        model._build_debug_param_to_name_mapping(parameters),
        model.static_graph,
    )
    model._has_rebuilt_buckets = False
    if model.static_graph:
        # The first backward pass of the new reducer looks at it.
        model._static_graph_delay_allreduce_enqueued = False
        model.reducer._set_static_graph()
        model.logger._set_static_graph()
    if getattr(model, "_require_manual_backward_finalization", False):
        model.require_manual_backward_finalization = True


def give_back_later(model: Any, register: Callable[[Any], None]) -> None:
    """Before the model's next forward pass, and then register(model), which puts a hook under it.

    For a model in training: a backward pass may still come for the reducer that is there.
    """
    later = _Later(register)
    later.handle = model.register_forward_pre_hook(later)


class _Later:
    """A forward pre-hook that runs once. Models may be pickled with it."""

    def __init__(self, register: Callable[[Any], None]) -> None:
        self._register = register
        self.handle: Any = None

    @untraced
    def __call__(self, model: Any, inputs: Any) -> None:
        self.handle.remove()
        try:
            give_back(model)
            self._register(model)
        except Exception as error:
            _log.warning("a DDP hook of the script comes too late: %s", error, exc_info=True)
