# SPDX-License-Identifier: Apache-2.0
"""Hooks on the layers of a model, which see their inputs and the gradients of their outputs.

The gradient of an output comes through a hook of that tensor, not through a backward hook of the
module: so a script may change the output in place, as torch.nn.ReLU(inplace=True) does.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from braid.torch.kfac.factors import Factor
from braid.torch.kfac.layers import Layer
from braid.torch.kfac.updating import FactorUpdates
from braid.torch.operations.placed_work import PlacedWork
from braid.torch.operations.untraced import untraced


class Watched(NamedTuple):
    """A layer with its factors."""

    layer: Layer
    a: Factor
    g: Factor


class Watcher:
    """Adds what it sees to factors. Passes without gradients, and modules in evaluation, do not count."""

    def __init__(
        self, watched: Sequence[Watched], updates: FactorUpdates, gradient_scale: Callable[[], float],
        work: PlacedWork,
    ) -> None:  # fmt: skip
        """A G is made of gradients times `gradient_scale`, a method. `work` hears how long that takes."""
        self._updates = updates
        self._work = work
        # Weakly: who has it has this, too.
        self._gradient_scale = weakref.WeakMethod(gradient_scale)
        self._handles = [
            each.layer.module.register_forward_hook(_ForwardHook(self, each), with_kwargs=True)
            for each in watched
        ]
        # The hooks do nothing without it, and go with it.
        weakref.finalize(self, _remove, self._handles).atexit = False

    def remove(self) -> None:
        _remove(self._handles)

    def saw_input(self, watched: Watched, inputs: torch.Tensor, output: torch.Tensor) -> None:
        if not (watched.layer.module.training and output.requires_grad and self._updates.is_on):
            return
        # A checkpoint that is computed once more in the backward pass was seen in the forward pass,
        # unless that was without gradients.
        if torch._C._current_graph_task_id() != -1 and watched.a.uses > watched.g.uses:
            return
        begin_ns = time.monotonic_ns()
        with _exact(inputs):
            watched.a.add(watched.layer.input_rows(inputs.detach()))
        self._note(watched.a, begin_ns)
        self._updates.added(watched.a)
        output.register_hook(_GradientHook(self, watched))

    def saw_gradient(self, watched: Watched, gradient: torch.Tensor) -> None:
        scale_of = self._gradient_scale()
        if scale_of is None or not self._updates.is_on:
            return
        begin_ns = time.monotonic_ns()
        with _exact(gradient):
            rows = watched.layer.gradient_rows(gradient.detach())
            watched.g.add(rows, scale_of() ** 2)
        self._note(watched.g, begin_ns)
        self._updates.added(watched.g)

    def _note(self, factor: Factor, begin_ns: int) -> None:
        if factor.sum is not None and factor.sum.device.type == "cpu":  # Others go on meanwhile.
            self._work.computed(factor.name, None, begin_ns)


class _ForwardHook:
    def __init__(self, watcher: Watcher, watched: Watched) -> None:
        self._watcher = weakref.ref(watcher)
        self._watched = watched

    @untraced
    def __call__(
        self, module: torch.nn.Module, inputs: Any, named_inputs: Any, output: torch.Tensor
    ) -> None:
        watcher = self._watcher()
        if watcher is not None and torch.is_grad_enabled():
            with torch.no_grad():
                watcher.saw_input(self._watched, [*inputs, *named_inputs.values()][0], output)

    def __reduce__(self) -> Any:
        """A copy of the model, or what is loaded from a file, is not watched."""
        return _unwatched, ()


def _unwatched() -> Callable[..., None]:
    return _see_nothing


def _see_nothing(*_: Any) -> None:
    """The hook of a copy."""


class _GradientHook:
    def __init__(self, watcher: Watcher, watched: Watched) -> None:
        self._watcher = weakref.ref(watcher)
        self._watched = watched

    @untraced
    @torch.no_grad()
    def __call__(self, gradient: torch.Tensor) -> None:
        watcher = self._watcher()
        if watcher is not None:
            watcher.saw_gradient(self._watched, gradient)


def _exact(values: torch.Tensor) -> Any:
    """Sums are made in the type that they are asked for, also under autocast."""
    return torch.autocast(values.device.type, enabled=False)


def _remove(handles: list[Any]) -> None:
    for handle in handles:
        handle.remove()
    handles.clear()
