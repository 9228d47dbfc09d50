# SPDX-License-Identifier: Apache-2.0
"""How a model's gradients travel between nodes: by which codec, parameter by parameter.

Nothing is lossy unless somebody asks for it. BRAID_CODEC=int8 does for a whole script, set_codec()
for one model, and what set_codec() says goes first.
"""

from __future__ import annotations

import fnmatch
import logging
import os
import weakref
from collections.abc import Mapping
from typing import Any

import torch

from braid.errors import BraidError, InvalidArgumentError
from braid.torch.ddp.power_sgd import rank_of
from braid.torch.group.unheard import note_use

_log = logging.getLogger("braid")
NONE = "none"

# What set_codec() was told, by the module without DDP around it: patterns, the latest first.
_chosen: weakref.WeakKeyDictionary[torch.nn.Module, list[tuple[str, str]]]
_chosen = weakref.WeakKeyDictionary()


def set_codec(model: torch.nn.Module, codec: str | Mapping[str, str]) -> None:
    """Chooses the codec of a model's gradients between nodes. The same on all ranks.

        set_codec(model, "int8")
        set_codec(model, {"*": "int8", "*.bias": "none", "embedding.*": "topk:ratio=0.01"})
        set_codec(model, "powersgd:rank=4")

    A pattern is for names as `model.named_parameters()` gives them, as in a shell. If several
    patterns fit, the last one counts. A parameter that no pattern fits keeps its codec. Call it
    before the model's third backward pass, with the model or the DistributedDataParallel around it.
    Gradients that are not float32 travel as they are.
    """
    patterns = {"*": codec} if isinstance(codec, str) else dict(codec)
    for pattern, text in patterns.items():
        if not isinstance(pattern, str) or not isinstance(text, str):
            raise TypeError(f"a codec is a text for a pattern, not {text!r} for {pattern!r}")
        rank_of(text)  # Of PowerSGD says what is wrong. Other codecs the daemon knows.
    module = _without_ddp(model)
    names = [name for name, _ in module.named_parameters()]
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            raise ValueError(f"no parameter of the model fits '{pattern}'; there are {names[:4]} …")
    _chosen.setdefault(module, [])[:0] = reversed(patterns.items())


def codec_of(model: torch.nn.Module, name: str, dtype: torch.dtype) -> str:
    """The codec of one parameter's gradient; empty: none."""
    chosen = _chosen_for(model, name)
    if chosen == NONE:
        return ""
    if dtype != torch.float32:
        _log.warning("the gradient of %s is %s and travels as it is: %s is for float32", name,
                     dtype, chosen)  # fmt: skip
        return ""
    note_use("BRAID_CODEC")
    return chosen


def has_codecs(model: torch.nn.Module) -> bool:
    """Whether one is chosen for any of its gradients by now."""
    trained = (name for name, parameter in model.named_parameters() if parameter.requires_grad)
    return any(_chosen_for(model, name) != NONE for name in trained)


def because_of_codec(error: BraidError) -> str:
    """What stands before an error of a registration, if it may be about the environment's codec."""
    chosen = os.environ.get("BRAID_CODEC", NONE) or NONE
    is_about_codecs = isinstance(error, InvalidArgumentError) and "codec" in str(error)
    return f"BRAID_CODEC={chosen}: " if is_about_codecs and chosen != NONE else ""


def _chosen_for(model: torch.nn.Module, name: str) -> str:
    for pattern, text in _chosen.get(_without_ddp(model), []):
        if fnmatch.fnmatchcase(name, pattern):
            return text
    return os.environ.get("BRAID_CODEC", NONE) or NONE


def _without_ddp(model: Any) -> torch.nn.Module:
    is_ddp = isinstance(model, torch.nn.parallel.DistributedDataParallel)
    return model.module if is_ddp else model
