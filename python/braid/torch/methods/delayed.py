# SPDX-License-Identifier: Apache-2.0
"""An optimizer that computes on while the sum of the last gradients is on its way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from braid.torch.group.training_group import names_of
from braid.torch.methods.delay import Delay
from braid.torch.methods.delayed_steps import DelayedSteps
from braid.torch.methods.loss_scaling import watch_scaler
from braid.torch.methods.owners_optimizer import OwnersOptimizer, loss_of
from braid.torch.weights.rounds import Rounds


class DelayedOptimizer(OwnersOptimizer):
    """SGD whose step() does not wait for other nodes: OD-SGD, SSD-SGD and CD-SGD.

        optimizer = braid.torch.DelayedOptimizer(model.parameters(), "od-sgd", lr=0.1, momentum=0.9)
        for inputs, labels in data:
            ...                      # forward, backward, clipping as ever
            optimizer.step()         # returns with weights to go on with
        optimizer.finish()           # before evaluating or saving the model

    The daemons keep the global state: weights, and the momentum of torch's SGD. step() hands them
    this rank's gradient, takes the global state that lacks exactly this one step, applies the
    gradient of its own node to it, and returns. The sum goes through the network during the next
    forward and backward pass. `local_updates` has the equations. Where that takes longer than
    computing, the next gradient waits at the daemons meanwhile, in as much memory again.

    method "od-sgd": one step late. "ssd-sgd": the same, and the weights come back only every
    `pull_every` steps: (1 + 1 / pull_every) / 2 of the bytes. "cd-sgd": one step late, and gradients
    travel in 2 bits, but every `correction_every` steps in full.

    Between steps parameters are not the global state, and differ between nodes. finish() makes them
    equal to it, on all ranks, with the same bits; training may go on after it. What fails on the
    way is raised by the next step(), or by finish().

    Made, stepped, finished and asked for its state on all ranks of the group alike, with the same
    settings. When it is made it gives all ranks the first one's parameters. A parameter without a
    gradient on this rank counts as one of zeros, as for ShardedOptimizer. A
    DistributedDataParallel around the model leaves gradients alone. With a torch.amp.GradScaler a
    step is left out on all ranks if any has found an infinity.

    state_dict() is a collective, and changes nothing in training. It has torch's format (SGD loads
    it) and beside it the global weights, this rank's own, and the place in the schedule. A run that
    loads it goes on as this one would; what a codec holds back is not in it. Where only one rank's
    is saved, call finish() before: then nothing differs between ranks.
    """

    def __init__(
        self,
        params: Any,
        method: str = "od-sgd",
        *,
        lr: float,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        force: bool = False,
        process_group: Any = None,
        model: torch.nn.Module | None = None,
        **delay: Any,
    ) -> None:
        """lr to nesterov are the owners' step, as torch.optim.SGD has them. `delay` are fields of Delay:

        `local` is the local update: "sgd", and with od-sgd and cd-sgd "dc" or "adc"; with ssd-sgd
        "glu" (which is what it does if nothing is said) with its `alpha` and `beta`. It has the
        learning rate `local_lr` (a group may have one of its own), else the owners' as it is in each
        step.
        The first `warmup_steps` (200) are synchronous. `pull_every` is ssd-sgd's (4; with "sgd" 2);
        `correction_every` (5) and `threshold`, about the largest usual magnitude of an element of a
        node's gradient, are cd-sgd's.
        With `pull` of "bf16" float32 weights come back rounded, and owners keep exact ones.
        With `worker` of "node" the gradients of a node's ranks are averaged before the local
        update, and the ranks of a node have the same weights; with "rank" each has its own.
        Settings that are known to train worse or to diverge are refused, or with `force` warned of.
        `model` gives parameters their names in messages.
        """
        self._steps: DelayedSteps | None = None
        self._delay = Delay(method, **delay).checked()
        template = torch.optim.SGD(
            params, lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
            nesterov=nesterov,
        )  # fmt: skip
        most = max(float(group["momentum"]) for group in template.param_groups)
        self._delay.refuse_divergence(most, force)
        super().__init__(template, f"DelayedOptimizer with {method}", process_group, model)
        group = self._group
        watch_scaler(self, lambda: group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes one step; the parameters are then what the next forward pass is to use."""
        loss = loss_of(closure)
        self._delayed().step()
        return loss

    @property
    def global_state(self) -> Rounds:
        """The last step's state: wait() until all ranks' gradients are in it, done() to ask."""
        return self._delayed().global_state

    @torch.no_grad()
    def finish(self) -> None:
        """Makes the parameters the global state after all steps, on all ranks. A collective."""
        self._delayed().finish()

    @torch.no_grad()
    def state_dict(self) -> dict[str, Any]:
        state_dict = super().state_dict()
        return self._delayed().state_dict(state_dict)

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the state of this optimizer or of a torch.optim.SGD. The model comes first."""
        self._load_groups(state_dict)
        self._delayed().load_state_dict(state_dict)

    def _delayed(self) -> DelayedSteps:
        if self._steps is None:
            names = names_of(self.param_groups, self._model)
            self._steps = DelayedSteps(
                lambda: self.param_groups, self._delay, self._group, names, self.name
            )
            self._is_dealt_out = True
        return self._steps
