# SPDX-License-Identifier: Apache-2.0
"""Gradients that go to the daemons while the backward pass goes on, each as soon as it is there.

Each parameter has a hook, which autograd calls when the gradient is complete: on the CPU in the
thread that calls backward(), for CUDA in a thread of each device. So nothing here belongs to a
thread, and a lock keeps hooks apart. step() comes when backward() has returned, and so after all
hooks.

What a hook can only see later is looked at in step(): whether the backward pass has ended, and
whether gradients are still what was submitted.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from braid.torch.ddp import claims
from braid.torch.operations.untraced import untraced
from braid.torch.weights.kept import KeptWeights
from braid.torch.weights.open_updates import OpenUpdate
from braid.torch.weights.rounds import Round
from braid.torch.weights.rules import refuse_gradient

_LEAVE_IT_OFF = "leave overlap_backward off"


class _Given:
    """A gradient that was submitted, and as which version of it."""

    __slots__ = ("gradient", "name", "parameter", "version")

    def __init__(self, parameter: torch.Tensor, name: str) -> None:
        self.parameter = parameter
        self.name = name
        self.note()

    def note(self) -> None:
        # Held, so that no other gradient can be taken for this one.
        self.gradient = self.parameter.grad
        self.version = -1 if self.gradient is None else self.gradient._version

    def objection(self) -> str:
        """Why the parameter's gradient is not what was submitted; empty if it is."""
        now = self.parameter.grad
        if now is not self.gradient:
            return "was taken away" if now is None else "was replaced"
        return "was changed" if now is not None and now._version != self.version else ""


class BackwardSubmissions:
    """Submissions of one optimizer. An update is open from the first gradient to step()."""

    def __init__(
        self, owner: claims.Claimant, who: str, begin: Callable[[], OpenUpdate | None]
    ) -> None:
        """`begin`, a method, opens an update. None: gradients of this step are left to step()."""
        # Weakly: an optimizer that nobody has any more ends at once, and with it its claims.
        self._owner = weakref.ref(owner)
        self._begin = weakref.WeakMethod(begin)
        self._who = who
        self._lock = threading.Lock()
        self._watched: set[int] = set()
        self._update: OpenUpdate | None = None
        self._is_left_to_step = False
        self._given: dict[int, _Given] = {}
        # Backward passes that have begun and not ended: autograd's numbers of them.
        self._passes: set[int] = set()
        self._failure: Exception | None = None

    def watch(self, kept: KeptWeights) -> None:
        """All that are registered, from the next backward pass on."""
        for weights in kept.sets:
            for parameter in (weight.parameter for weight in weights):
                if id(parameter) not in self._watched and parameter.requires_grad:
                    self._watched.add(id(parameter))
                    hook = _GradientHook(self, kept.name_of(parameter))
                    parameter.register_post_accumulate_grad_hook(hook)

    def refuse(self, what: str) -> None:
        """Raises RuntimeError where gradients are on their way, and step() has not come yet."""
        if self._given:
            raise RuntimeError(
                f"{self._who}: {what} comes between a backward pass, whose gradients are on their "
                "way to the daemons, and step(): call step() first"
            )

    def refuse_scaler(self) -> NoReturn:
        """In step(): gradients are scaled, and whether all are finite only step() is told."""
        with self._lock:
            self._fail(
                "overlap_backward does not go with a GradScaler, which looks at gradients that are "
                f"on their way already: train in bfloat16, or {_LEAVE_IT_OFF}"
            )

    def open(self) -> OpenUpdate | None:
        """In step(), also where no gradient has come. None: step() is to submit all gradients."""
        with self._lock:
            update = self._opened()
            self._is_left_to_step = False
            return update

    def close(
        self, kept: KeptWeights, gradient: Callable[[torch.Tensor], torch.Tensor | None]
    ) -> list[Round]:
        """In step(), after open() has returned an update: submits what no hook has."""
        with self._lock:
            if self._passes:
                self._fail(self._broken_off())
            for given in self._given.values():
                if objection := given.objection():
                    self._fail(
                        f"the gradient of '{given.name}' {objection} between the backward pass, "
                        "which has submitted it, and step(): to clip or to scale gradients, "
                        f"{_LEAVE_IT_OFF}"
                    )
            if changed := kept.changed_names():
                self._fail(
                    f"'{changed[0]}' was changed between the backward pass, which has submitted "
                    "its gradient, and step(): change parameters after step()"
                )
            assert self._update is not None
            try:
                rounds = self._update.close(gradient)
            except Exception as cause:
                self._give_up(cause)
                raise
            self._update = None
            self._given.clear()
            return rounds

    def submit(self, parameter: torch.Tensor, name: str) -> None:
        """In the backward pass."""
        owner = self._owner()
        if owner is None or not claims.is_claimed_by(parameter, owner):
            return
        with self._lock:
            update = self._opened()
            if update is None:
                return
            if id(parameter) in self._given:
                self._fail(self._second_gradient(name))
            self._watch_pass()
            try:
                refuse_gradient(parameter, self._who)
                update.add(parameter, parameter.grad)
            except Exception as cause:
                self._give_up(cause)
                raise
            self._given[id(parameter)] = _Given(parameter, name)

    def pass_ended(self, number: int) -> None:
        with self._lock:
            self._passes.discard(number)
            if not self._given or not claims.has_ddp():
                return
            # A DistributedDataParallel takes gradients into its buckets, and gives these back as
            # they were, for they are claimed.
            theirs = claims.ids_in_ddp()
            for key, given in self._given.items():
                if key in theirs:
                    given.note()

    def _opened(self) -> OpenUpdate | None:
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        if self._update is None and not self._is_left_to_step:
            begin = self._begin()
            self._update = begin() if begin is not None else None
            self._is_left_to_step = self._update is None
        return self._update

    def _watch_pass(self) -> None:
        number = torch._C._current_graph_task_id()
        if number not in self._passes:
            self._passes.add(number)
            _queue_callback(_EndOfPass(self, number))

    def _second_gradient(self, name: str) -> str:
        if self._passes - {torch._C._current_graph_task_id()}:
            return self._broken_off()
        return (
            f"'{name}' has a second gradient before step(), and the first one has been submitted: "
            f"to accumulate gradients over several backward passes, {_LEAVE_IT_OFF}"
        )

    def _broken_off(self) -> str:
        return (
            "a backward pass has not ended, for an error perhaps, and some of its gradients have "
            f"been submitted: to go on after that, {_LEAVE_IT_OFF}"
        )

    def _fail(self, text: str) -> NoReturn:
        error = RuntimeError(f"{self._who}: {text}")
        self._give_up(error)
        raise error

    def _give_up(self, cause: Exception) -> None:
        """What was submitted stays so. The other ranks are told that this one's rest is missing."""
        self._failure = cause
        if self._update is not None:
            self._update.fail(cause)
        self._given.clear()


class _GradientHook:
    """Does nothing when its optimizer is gone."""

    def __init__(self, submissions: BackwardSubmissions, name: str) -> None:
        self._submissions = weakref.ref(submissions)
        self._name = name

    @untraced
    @torch.no_grad()
    def __call__(self, parameter: torch.Tensor) -> None:
        submissions = self._submissions()
        if submissions is not None:
            submissions.submit(parameter, self._name)


class _EndOfPass:
    """Autograd calls it at the end of a backward pass that has raised no error.

    Then it goes to the end of the queue: DistributedDataParallel gives gradients back in a callback
    that may come after this one.
    """

    def __init__(self, submissions: BackwardSubmissions, number: int) -> None:
        self._submissions = weakref.ref(submissions)
        self._number = number
        self._is_last = False

    @untraced
    def __call__(self) -> None:
        submissions = self._submissions()
        if submissions is None:
            return
        if self._is_last:
            submissions.pass_ended(self._number)
        else:
            self._is_last = True
            _queue_callback(self)


def _queue_callback(callback: Callable[[], Any]) -> None:
    torch.autograd.Variable._execution_engine.queue_callback(callback)
