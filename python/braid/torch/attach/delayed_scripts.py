# SPDX-License-Identifier: Apache-2.0
"""BRAID_UPDATE=od-sgd: a script's torch.optim.SGD works as DelayedOptimizer, without a change to it.

With options, BRAID_UPDATE=ssd-sgd:pull_every=4,warmup_steps=100. From an optimizer's first step on,
if the default process group is braid's and has more than one rank. What cannot be delayed trains as
ever, and the log says why.

The script looks at its model when it wants: so model.eval(), model.state_dict() and
destroy_process_group() make parameters the latest global state that this rank can have by itself.
That is the state after all steps, and for ssd-sgd the one pulled last, up to pull_every - 1 steps
old. No other rank need do the same at that moment, so scripts may evaluate and save on one rank.
The momentum is the daemons': state_dict() of such an optimizer has none.
"""

from __future__ import annotations

import functools
import logging
import os
import weakref
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from braid.torch.attach.replacing import replace_everywhere
from braid.torch.ddp import claims
from braid.torch.group.process_group import BraidProcessGroup
from braid.torch.group.training_group import backend_of, names_of
from braid.torch.group.unheard import note_use
from braid.torch.environment.variables import WrongVariable
from braid.torch.methods.delay import Delay, parse_delay
from braid.torch.methods.delayed_steps import DelayedSteps
from braid.torch.methods.loss_scaling import watch_scaler
from braid.torch.methods.owners_optimizer import loss_of
from braid.torch.operations.tickets import TICKETS_MAX
from braid.torch.planned.tensors import TENSORS_MAX
from braid.torch.weights.rules import refuse_options

_log = logging.getLogger("braid")
VARIABLE = "BRAID_UPDATE"
_OFF = ("", "0", "none", "off")

# By optimizer, and as long as that lives.
_scripts: weakref.WeakKeyDictionary[Any, _Script] = weakref.WeakKeyDictionary()
_told: set[str] = set()


def is_asked_for() -> bool:
    return os.environ.get(VARIABLE, "").lower() not in _OFF


def wrap_optimizers() -> None:
    """From here on, if BRAID_UPDATE asks for it. A second call does nothing. Raises WrongVariable."""
    if not is_asked_for() or getattr(torch.optim.SGD.step, "_braid", False):
        return
    try:
        delay = parse_delay(os.environ[VARIABLE])
    except ValueError as error:
        raise WrongVariable(f"{VARIABLE} is '{os.environ[VARIABLE]}': {error}") from None
    sgd, module = torch.optim.SGD, torch.nn.Module
    torch.optim.Optimizer.__init__ = _wrap_init(torch.optim.Optimizer.__init__, delay)
    sgd.step = _wrap_step(sgd.step)
    module.train = _wrap_train(module.train)
    module.state_dict = _wrap_state_dict(module.state_dict)
    destroy = distributed_c10d.destroy_process_group
    replace_everywhere("destroy_process_group", destroy, _wrap_destroy(destroy))


def settle_all() -> None:
    """Makes the parameters of delayed optimizers the latest global state that this rank can have."""
    for script in list(_scripts.values()):
        script.settle()


class _Script(claims.Claimant):
    """One torch.optim.SGD of a script. Holds it weakly."""

    def __init__(self, optimizer: torch.optim.SGD, delay: Delay) -> None:
        self._optimizer = weakref.ref(optimizer)
        self._delay = delay
        self._is_delayed: bool | None = None  # Not known before there is a process group.
        self._steps: DelayedSteps | None = None
        self._claimed = 0
        self.claim_all(optimizer)
        watch_scaler(optimizer, self._scaling_group)

    @property
    def is_delayed(self) -> bool:
        """As far as it is known."""
        return bool(self._is_delayed)

    @property
    def parameters(self) -> int:
        return self._claimed

    def owns_gradients(self) -> bool:
        """Whether it is delayed: decided once."""
        if self._is_delayed is None:
            self._decide()
        return bool(self._is_delayed)

    def _scaling_group(self) -> Any:
        """Whose ranks leave out a step together."""
        return distributed_c10d._get_default_group() if self.owns_gradients() else None

    def meets_hook(self, text: str) -> None:
        if self._steps is not None:
            raise RuntimeError(text)
        self._is_delayed = False
        _tell("a torch.optim.SGD is not delayed: a DistributedDataParallel has a hook of the script's")

    def claim_all(self, optimizer: torch.optim.SGD) -> None:
        """Also those that were added since the last step."""
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if len(parameters) != self._claimed:
            self._claimed = len(parameters)
            claims.claim(self, parameters)

    @torch.no_grad()
    def step(self) -> None:
        optimizer = self._optimizer()
        assert optimizer is not None
        if self._steps is None:
            group = distributed_c10d._get_default_group()
            names = names_of(optimizer.param_groups, None)
            self._steps = DelayedSteps(
                lambda: self._optimizer().param_groups, self._delay, group, names, VARIABLE
            )
        self.claim_all(optimizer)
        if optimizer.state:
            # A checkpoint's state: the owners take it.
            self._steps.load_state_dict(torch.optim.Optimizer.state_dict(optimizer))
            optimizer.state.clear()
        self._steps.step()

    @torch.no_grad()
    def settle(self) -> None:
        if self._steps is not None:
            self._steps.settle()

    def _decide(self) -> None:
        optimizer = self._optimizer()
        if optimizer is None or not dist.is_initialized():
            return
        group = distributed_c10d._get_default_group()
        reason = _reason_against(optimizer, group, self._delay)
        self._is_delayed = reason is None
        if reason is not None:
            _tell(f"a torch.optim.SGD is not delayed: {reason}")
        elif self._is_delayed:
            note_use(VARIABLE)
            if group.rank() == 0:
                _log.info("%s=%s: a torch.optim.SGD is delayed", VARIABLE, self._delay.method)


def _reason_against(optimizer: Any, group: Any, delay: Delay) -> str | None:
    if not isinstance(group, BraidProcessGroup):
        return f"the default process group is {backend_of(group)}, not braid's"
    if group.size() == 1:
        return "its process group has one rank"
    parameters = [p for each in optimizer.param_groups for p in each["params"]]
    if any(each is not group for each in claims.ddp_groups(parameters)):
        return "its DistributedDataParallel is on another group than the default one"
    count = sum(each.requires_grad for each in parameters)
    if count > TENSORS_MAX:
        return f"it has {count} parameters, and {TENSORS_MAX} are the most"
    if (together := count + _delayed_parameters()) > TICKETS_MAX:
        others = f"with the {together - count} of other delayed optimizers"
        return f"it has {count} parameters {others}, and {TICKETS_MAX} are the most"
    try:
        for each in optimizer.param_groups:
            refuse_options(each, "a delayed SGD")
            delay.refuse_divergence(float(each["momentum"]), force=False)
    except ValueError as error:
        return str(error)
    return None


def _delayed_parameters() -> int:
    """All delayed optimizers' parameters: what they submit in a step counts together."""
    return sum(script.parameters for script in _scripts.values() if script.is_delayed)


def _wrap_init(original: Callable[..., None], delay: Delay) -> Callable[..., None]:
    """Every optimizer's, which each class calls."""

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        kind = type(self)
        if kind is torch.optim.SGD:
            _scripts[self] = _Script(self, delay)
        elif not kind.__module__.startswith("braid."):
            _tell(f"{kind.__name__} is not delayed: that is for torch.optim.SGD itself")

    return __init__


def _wrap_step(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def step(self: Any, closure: Callable[[], Any] | None = None) -> Any:
        script = _scripts.get(self)
        if script is None or not script.owns_gradients():
            return original(self, closure)
        loss = loss_of(closure)
        script.step()
        return loss

    step._braid = True  # type: ignore[attr-defined]
    return step


def _wrap_train(original: Callable[..., Any]) -> Callable[..., Any]:
    """eval() is train(False)."""

    @functools.wraps(original)
    def train(self: Any, mode: bool = True) -> Any:
        if not mode:
            settle_all()
        return original(self, mode)

    return train


def _wrap_state_dict(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        settle_all()
        return original(self, *args, **kwargs)

    return state_dict


def _wrap_destroy(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def destroy_process_group(*args: Any, **kwargs: Any) -> None:
        try:
            settle_all()
        except Exception as error:
            _log.warning("the model's parameters are not the global state: %s", error)
        return original(*args, **kwargs)

    return destroy_process_group


def _tell(text: str) -> None:
    if text not in _told:
        _told.add(text)
        _log.warning("%s=%s: %s", VARIABLE, os.environ.get(VARIABLE, ""), text)
