# SPDX-License-Identifier: Apache-2.0
"""Training on each rank by itself, with the ranks' weights brought together every so many steps.

DiLoCo: Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models", 2023;
in fragments and overlapped: "Streaming DiLoCo with overlapping communication", 2025. Post-local SGD:
Lin et al., "Don't Use Large Mini-Batches, Use Local SGD", ICLR 2020.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from braid.torch.ddp import claims
from braid.torch.group.training_group import average, braid_group, names_of
from braid.torch.methods.fragments import Fragment, Outer
from braid.torch.methods.loss_scaling import watch_scaler
from braid.torch.weights.rules import refuse_options


class DiLoCo(claims.Claimant):
    """Each rank trains with its own optimizer; the daemons keep a global state between them.

        inner = torch.optim.AdamW(model.parameters(), lr=4e-4)
        diloco = braid.torch.DiLoCo(model, inner, sync_every=100)
        for inputs, labels in data:
            ...                       # forward, backward as ever
            inner.step()              # every 100th also brings the ranks together
        diloco.finish()               # before evaluating or saving the model

    How far a rank's weights have gone from the global ones in `sync_every` steps is the gradient of
    an outer step, SGD with Nesterov's momentum, which the daemons average and take. With several
    `fragments` one of them is brought together every sync_every / fragments steps, in turn, so that
    less is sent at a time. With `overlap_steps` a fragment's new global state is used so many steps
    after it was asked for. Then, or with an `alpha` above 0, parameters become
    lerp(global, local, alpha).

    Made, stepped and finished on all ranks of the group alike. When it is made it gives all ranks
    the first one's parameters. A DistributedDataParallel around the model leaves gradients alone;
    what only buffers hold, as a BatchNorm's statistics, stays each rank's own. Hooks are on the
    inner optimizer: remove() takes them off.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        inner_optimizer: torch.optim.Optimizer,
        sync_every: int,
        *,
        outer_lr: float = 0.7,
        outer_momentum: float = 0.9,
        nesterov: bool = True,
        fragments: int | Sequence[torch.nn.Module] = 1,
        overlap_steps: int = 0,
        alpha: float = 0.0,
        codec: str = "",
        process_group: Any = None,
    ) -> None:
        """`fragments`: how many of about the same size, or the modules that they are.

        `codec` encodes float32 distances between nodes, "int4" for one.
        """
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        parts = _parts_of(trained, fragments)
        _check_schedule(sync_every, len(parts), overlap_steps, alpha)
        if outer_lr < 0 or not 0 <= outer_momentum < 1:
            raise ValueError(
                f"outer_lr is 0 or more and outer_momentum from 0 to below 1, not {outer_lr} and "
                f"{outer_momentum}"
            )
        outer = Outer(outer_lr, outer_momentum, nesterov, codec)
        self._prepare(inner_optimizer, process_group, names_of([{"params": trained}], model))
        self._interval = sync_every // len(parts)
        self._overlap_steps, self._alpha = overlap_steps, alpha
        self._begin(parts, outer)

    def finish(self) -> None:
        """Brings all ranks together now: the same weights everywhere. A collective."""
        with torch.no_grad():
            for fragment in self._fragments:
                if fragment.is_under_way:
                    fragment.finish(self._alpha)
                fragment.begin()
                fragment.finish(0.0)
        self._local_step, self._current = 0, 0

    def state_dict(self) -> dict[str, Any]:
        """The global state, the outer momentum and the place in the schedule. A collective. The
        parameters and the inner optimizer have state_dict() of their own, which differ between
        ranks; after finish() the parameters do not."""
        for fragment in self._fragments:
            fragment.arrive()
        state = {}
        for fragment in self._fragments:
            for key, entry in fragment.state().items():
                state[self._names[key]] = entry
        return {
            "state": state,
            "steps": self._steps,
            "local_step": self._local_step,
            "fragment": self._current,
            "under_way": [fragment.is_under_way for fragment in self._fragments],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """After the model and the inner optimizer have theirs. A collective."""
        missing = sorted(set(self._names.values()) ^ set(state_dict["state"]))
        if missing or len(state_dict["under_way"]) != len(self._fragments):
            raise ValueError(
                f"the state is of another model, or of other fragments; differing: {missing[:4]}"
            )
        states = {key: state_dict["state"][name] for key, name in self._names.items()}
        for fragment, is_under_way in zip(self._fragments, state_dict["under_way"]):
            fragment.arrive()
            fragment.load_state(states, is_under_way=is_under_way)
        self._steps = int(state_dict["steps"])
        self._local_step = int(state_dict["local_step"])
        self._current = int(state_dict["fragment"])

    def remove(self) -> None:
        """Takes the hooks off the inner optimizer; parameters stay as they are."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _prepare(
        self, optimizer: torch.optim.Optimizer, process_group: Any, names: dict[torch.Tensor, str]
    ) -> None:
        self.name = type(self).__name__
        if not names:
            raise ValueError(f"{self.name}: the model has no parameters that need gradients")
        refuse_options({"params": list(names)}, self.name)
        self._group = braid_group(process_group, self.name)
        self._names = {id(parameter): name for parameter, name in names.items()}
        self._parameters = list(names)
        self._optimizer = optimizer
        self._steps = 0  # All steps of the inner optimizer.
        self._local_step = 0  # Since the current fragment's turn began.
        self._current = 0
        self._warmup_steps = 0
        self._handles: list[Any] = []

    def _begin(self, parts: Sequence[Sequence[torch.Tensor]], outer: Outer) -> None:
        claims.claim(self, self._parameters)
        self._fragments = [Fragment(self._group, self._names, part, outer) for part in parts]
        with torch.no_grad():
            for fragment in self._fragments:
                fragment.load_parameters()
        self._handles.append(self._optimizer.register_step_post_hook(self._after_step))
        own = weakref.ref(self)
        watch_scaler(self._optimizer, lambda: _scaling_group(own()), lambda: _count_step(own()))

    @torch.no_grad()
    def _after_step(self, *_: Any) -> None:
        self._steps += 1
        if self._steps < self._warmup_steps:
            return
        if self._steps == self._warmup_steps:
            for fragment in self._fragments:
                fragment.load_parameters()
            return
        self._local_step += 1
        fragment = self._fragments[self._current]
        if self._local_step == self._interval - self._overlap_steps:
            fragment.begin()
        if self._local_step == self._interval:
            fragment.finish(self._alpha)
            self._local_step = 0
            self._current = (self._current + 1) % len(self._fragments)


class PostLocalSGD(DiLoCo):
    """Each rank trains by itself, and every `sync_every` steps weights are averaged over the ranks.

        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        averaging = braid.torch.PostLocalSGD(optimizer, sync_every=8, warmup_steps=500)

    In the first `warmup_steps` gradients are averaged before each step, as without it: by the
    DistributedDataParallel around the model, else here (not those of a closure). What DiLoCo says of
    hooks, finish(), state_dict() and load_state_dict() holds here, too.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        sync_every: int,
        warmup_steps: int = 0,
        *,
        codec: str = "",
        process_group: Any = None,
    ) -> None:
        _check_schedule(sync_every, 1, 0, 0.0)
        if warmup_steps < 0:
            raise ValueError(f"warmup_steps is 0 or more, not {warmup_steps}")
        names = names_of(optimizer.param_groups, None)
        self._prepare(optimizer, process_group, {p: n for p, n in names.items() if p.requires_grad})
        self._interval, self._overlap_steps, self._alpha = sync_every, 0, 0.0
        self._warmup_steps = warmup_steps
        self._begin([self._parameters], Outer(1.0, 0.0, False, codec))
        self._handles.append(optimizer.register_step_pre_hook(self._before_step))

    def owns_gradients(self) -> bool:
        return self._steps >= self._warmup_steps

    @torch.no_grad()
    def _before_step(self, *_: Any) -> None:
        if self._steps >= self._warmup_steps or claims.ddp_groups(self._parameters):
            return
        average(self._group, [p.grad for p in self._parameters if p.grad is not None])


def _scaling_group(steps: DiLoCo | None) -> Any:
    """In warm-up the ranks average their gradients, and leave out a step together. After that each
    rank may leave out one of its own."""
    return steps._group if steps is not None and steps._steps < steps._warmup_steps else None


def _count_step(steps: DiLoCo | None) -> None:
    """One that a scaler has left out: rounds of all ranks end together."""
    if steps is not None and steps._handles:
        steps._after_step()


def _check_schedule(sync_every: int, fragments: int, overlap_steps: int, alpha: float) -> None:
    if sync_every < 1 or fragments < 1 or sync_every % fragments != 0:
        raise ValueError(
            f"sync_every is 1 or more and a multiple of the number of fragments, not {sync_every} "
            f"with {fragments}"
        )
    interval = sync_every // fragments
    if not 0 <= overlap_steps < interval:
        raise ValueError(
            f"overlap_steps is from 0 to below {interval}, when the next fragment's turn begins, not "
            f"{overlap_steps}"
        )
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha is from 0 (global) to 1 (local), not {alpha}")


def _parts_of(
    parameters: Sequence[torch.Tensor], fragments: int | Sequence[torch.nn.Module]
) -> list[list[torch.Tensor]]:
    """Each parameter in one part."""
    if isinstance(fragments, int):
        return _even_parts(parameters, fragments)
    parts = [[p for p in module.parameters() if p.requires_grad] for module in fragments]
    given = [id(parameter) for part in parts for parameter in part]
    wanted = {id(parameter) for parameter in parameters}
    if set(given) != wanted or len(given) != len(wanted) or not all(parts):
        raise ValueError(
            f"the fragments have {len(given)} parameters ({len(set(given))} different ones), and the "
            f"model {len(wanted)}: each belongs into one fragment"
        )
    return parts


def _even_parts(parameters: Sequence[torch.Tensor], count: int) -> list[list[torch.Tensor]]:
    """Neighbours together, of about the same number of elements, none empty."""
    if not 1 <= count <= len(parameters):
        raise ValueError(
            f"fragments is from 1 to the number of parameters, {len(parameters)}, not {count}"
        )
    total = sum(parameter.numel() for parameter in parameters)
    parts: list[list[torch.Tensor]] = [[]]
    before = 0
    for place, parameter in enumerate(parameters):
        left = len(parameters) - place
        is_full = before >= total * len(parts) / count
        if parts[-1] and len(parts) < count and (is_full or left <= count - len(parts)):
            parts.append([])
        parts[-1].append(parameter)
        before += parameter.numel()
    return parts
