# SPDX-License-Identifier: Apache-2.0
"""An optimizer whose state is divided between the nodes, and whose step the daemons take.

ZeRO stage 1 (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
Models", SC 2020): gradients are reduced to the owner of each element, the owner updates it, and the
new weights are gathered. That is what an all-reduce moves, and momentum and moments are kept once
in the job instead of once on each rank, outside of the trainers' memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.distributed import ReduceOp

from braid import UpdateFlag
from braid.torch.group.training_group import names_of
from braid.torch.methods.backward_submissions import BackwardSubmissions
from braid.torch.methods.forward_waits import ForwardWaits
from braid.torch.methods.owners_optimizer import OwnersOptimizer, loss_of, places_of
from braid.torch.weights.kept import KeptWeights, State
from braid.torch.weights.open_updates import OpenUpdate
from braid.torch.weights.rounds import Rounds
from braid.torch.weights.rules import (
    EXACT_WEIGHTS,
    refuse_gradient,
    refuse_late_momentum,
    rule_of,
    settings_of,
)
from braid.torch.weights.weight import WEIGHTS, Settings, write_to_parameter

_PULLS = ("full", "bf16")


class ShardedOptimizer(OwnersOptimizer):
    """torch.optim.SGD, Adam, AdamW or Lion, with its step and its state at the daemons.

        optimizer = braid.torch.ShardedOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)

    Made, stepped, and asked for its state on all ranks of the group alike, with the same settings.
    Learning-rate schedulers, param groups, closures and gradient clipping (of this rank's own
    gradients) work as with the optimizer of torch. All ranks have the same bits after each step.

    Gradients are averaged over the ranks by step() itself. A DistributedDataParallel around the
    model leaves them alone, from the moment when both exist; without one the result is the same.

    When it is made it gives all ranks the first one's parameters. So does a step() before which
    parameters were changed in place, as by load_state_dict() of the model; after a change through
    `parameter.data`, which torch does not count, call reload().

    A parameter without a gradient (None) on this rank counts as one with a gradient of zeros: its
    weight decay and momentum go on. Only one that has never had a gradient on any rank is passed
    over. With a torch.amp.GradScaler a step is left out on all ranks if any has found an infinity.

    With `overlap_backward` each gradient goes to the daemons as soon as the backward pass has
    it, so that late layers are updated while early ones are still computed. The first step
    submits all of them in step(), and so does one before which parameters were changed or a
    state was loaded. For the others it holds that
    - each parameter gets one gradient before step(): no accumulation over several passes;
    - gradients stay as they are until step(): no clipping, and no GradScaler;
    - learning rates and other settings are those at the beginning of the backward pass;
    - a backward pass that raises an error is the last one of this optimizer.
    Whatever is against this and can be seen, by torch's count of changes, is a RuntimeError,
    and so are all steps that follow. A hook of the script's that changes a gradient works if
    it was registered before the first step().

    state_dict() has torch's own format, with the state of all owners: the wrapped optimizer of
    torch loads it, and so does a job of another size. It is a collective: call it on all ranks, and
    save it on one. The state of 16-bit parameters is float32, and has the exact weights beside it.
    """

    # Then a scaler of losses leaves it to step() whether a step is left out: all ranks must agree.
    _step_supports_amp_scaling = True
    # A scaler sets `found_inf` and `grad_scale` before step(), and deletes them afterwards.

    def __init__(
        self,
        params: Any,
        optimizer_class: Any,
        *,
        process_group: Any = None,
        model: torch.nn.Module | None = None,
        overlap_forward: bool = False,
        overlap_backward: bool = False,
        codec: str = "",
        pull: str = "full",
        **kwargs: Any,
    ) -> None:
        """`optimizer_class` is torch.optim.SGD, Adam, AdamW or "lion"; `kwargs` are its arguments.

        With `overlap_forward` step() returns when the gradients are on their way, and each module
        of `model` waits for its own parameters just before its forward(). Modules that use
        parameters of others, not through their forward(), must not be in such a model; those of
        torch.nn may. Who reads parameters elsewhere (an average of weights, say) calls
        synchronize() first; the model's state_dict() does.

        `overlap_backward` is described above.

        `codec` encodes float32 gradients between nodes, "int8" for one. With `pull` of "bf16"
        weights of float32 come back rounded to bfloat16, and the owners keep the exact ones.
        """
        checked, self._rule = rule_of(optimizer_class)
        if pull not in _PULLS:
            raise ValueError(f"pull is one of {', '.join(_PULLS)}, not '{pull}'")
        if overlap_forward and model is None:
            raise ValueError("overlap_forward needs the model whose modules are to wait: model=…")
        template = checked(params, **kwargs)
        name = f"{type(self).__name__} of {checked.__name__}"
        super().__init__(template, name, process_group, model)
        self._pull_flags = int(UpdateFlag.PULL_BFLOAT16) if pull == "bf16" else 0
        self._codec = codec
        self._kept: KeptWeights | None = None
        self._rounds = Rounds([])
        self._waits = None
        self._submissions: BackwardSubmissions | None = None
        if overlap_forward:
            self._waits = ForwardWaits(model, self._parameters(), self._wait_for, self.synchronize)
        if overlap_backward:
            self._submissions = BackwardSubmissions(self, self.name, self._begin_update)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes one step on all ranks. Raises DistBackendError, which names what has failed."""
        loss = loss_of(closure)
        if self._submissions is not None and getattr(self, "found_inf", None) is not None:
            self._submissions.refuse_scaler()
        for parameter in self._parameters():
            refuse_gradient(parameter, self.name)
        if self._submissions is None or self._submissions.open() is None:
            self._submit_all()
        else:
            self._submit_rest(self._submissions)
        if self._submissions is not None and self._kept is not None:
            self._submissions.watch(self._kept)
        if self._waits is None:
            self.synchronize()
        return loss

    def synchronize(self) -> None:
        """Waits for the new weights of the last step, where step() did not."""
        if self._kept is not None and not self._rounds.is_over:
            self._rounds.take_all(write_to_parameter)

    def reload(self) -> None:
        """The next step() gives the owners the parameters as they are then on the first rank."""
        self._refuse_before_step("reload()")
        if self._kept is not None:
            self.synchronize()
            self._kept.reload()

    def state_dict(self) -> dict[str, Any]:
        """As the wrapped optimizer of torch has it, with the state of all owners, in CPU memory."""
        self._refuse_before_step("state_dict()")
        self.synchronize()
        kept = self._kept
        if kept is not None:
            slots = range(0 if self._has_exact_weights() else 1, 3)
            for parameter, state in kept.state_of(slots).items():
                values = dict(state.slots)
                exact = values.pop(WEIGHTS, None)
                if state.count or values:
                    self.state[parameter] = self._rule.to_torch(state.count, values)
                if exact is not None and self._saves_weights(parameter):
                    self.state[parameter][EXACT_WEIGHTS] = exact
        try:
            return super().state_dict()
        finally:
            self.state.clear()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the state of this optimizer or of torch's wrapped one. The next step() sends the
        state to the owners."""
        self._refuse_before_step("load_state_dict()")
        self.synchronize()
        places = places_of(state_dict)
        self._load_groups(state_dict)
        by_place = dict(zip(places, self._parameters()))
        states = {}
        for place, entry in state_dict["state"].items():
            states[by_place[place]] = self._state_of(by_place[place], entry)
        self._prepared().load_state(states)

    def _state_of(self, parameter: torch.Tensor, entry: dict[str, Any]) -> State:
        """A parameter's state, from its entry in a state_dict()."""
        count, slots = self._rule.from_torch(entry)
        if EXACT_WEIGHTS in entry:
            slots[WEIGHTS] = entry[EXACT_WEIGHTS]
        return State(count, slots)

    def _prepared(self) -> KeptWeights:
        if self._kept is None:
            names = names_of(self.param_groups, self._model)
            bf16 = self._pull_flags != 0
            self._kept = KeptWeights(self._group, names, codec=self._codec, pull_bf16=bf16)
        self._is_dealt_out = True
        return self._kept

    def _refuse_before_step(self, what: str) -> None:
        if self._submissions is not None:
            self._submissions.refuse(what)

    def _submit_all(self) -> None:
        self.synchronize()
        if self._is_to_be_left_out():
            return
        kept = self._prepared()
        kept.prepare(self._rule.slots(self.param_groups))
        self._rounds = kept.apply(self._settings(), self._gradient_of)

    def _begin_update(self) -> OpenUpdate | None:
        """At the first gradient of a backward pass, in whichever thread; else in step()."""
        kept = self._kept
        if kept is None or not kept.sets:
            return None
        # Takes the weights of modules that this forward pass has not used.
        self.synchronize()
        if kept.is_to_be_loaded():
            return None
        return OpenUpdate(kept.sets, self._settings())

    def _submit_rest(self, submissions: BackwardSubmissions) -> None:
        """What the backward pass has not: mostly zeros; and parameters that have a first gradient."""
        kept = self._prepared()
        rounds = submissions.close(kept, self._gradient_of)
        self._rounds = Rounds(rounds)
        # A matter of all ranks, which comes before any of them waits for results of these rounds.
        settings = self._settings()
        for weights in kept.wake(self._rule.slots(self.param_groups)):
            rounds.append(weights.apply(settings, self._gradient_of))
            self._rounds = Rounds(rounds)

    def _settings(self) -> Callable[[torch.Tensor], Settings]:
        """The settings of each parameter, as the groups are now."""
        settings = settings_of(self._rule, self.param_groups, self._pull_flags)
        refuse_late_momentum(self._kept.sets if self._kept else (), settings, self.name)
        return lambda parameter: settings[id(parameter)]

    def _gradient_of(self, parameter: torch.Tensor) -> torch.Tensor | None:
        gradient = parameter.grad
        scale = getattr(self, "grad_scale", None)
        if gradient is None or scale is None:
            return gradient
        return gradient / scale.to(gradient.device)

    def _is_to_be_left_out(self) -> bool:
        """Whether a scaler of losses has found an infinity on any rank."""
        found_here = getattr(self, "found_inf", None)
        if found_here is None:
            return False
        found = torch.tensor([float(found_here.item())])
        self._group.allreduce([found], ReduceOp.MAX).wait()
        return bool(found.item())

    def _has_exact_weights(self) -> bool:
        return any(self._saves_weights(parameter) for parameter in self._parameters())

    def _saves_weights(self, parameter: torch.Tensor) -> bool:
        """Whether the owners' weights are more than what the parameter says."""
        return self._kept is not None and not self._kept.keeps_exactly(parameter)

    def _wait_for(self, parameter: torch.Tensor) -> None:
        if self._kept is not None:
            self._rounds.take(parameter, write_to_parameter)
