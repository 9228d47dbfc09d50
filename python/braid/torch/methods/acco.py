# SPDX-License-Identifier: Apache-2.0
"""An optimizer whose communication travels behind the computing of the other half of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.distributed import ReduceOp

from braid.torch.methods.owners_optimizer import loss_of, places_of
from braid.torch.methods.sharded import ShardedOptimizer
from braid.torch.weights.kept import KeptWeights, State
from braid.torch.weights.rounds import Rounds
from braid.torch.weights.rules import refuse_gradient
from braid.torch.weights.weight import WEIGHTS, Weight, write_to_parameter

# What is saved of a parameter in the middle of a round, beside torch's state and the owner's weights:
# how many halves of the round were given; after the first one also its mean gradient over all ranks,
# and the weights that were estimated from it.
_HALVES = "halves"
_FIRST_HALF = "first_half"
_ESTIMATE = "estimate"
_OVERLAPS = ("overlap_forward", "overlap_backward")
_NAMES_SHOWN = 4


class Acco(ShardedOptimizer):
    """torch.optim.SGD, Adam, AdamW or Lion, whose step() does not wait for other nodes: ACCO.

        optimizer = braid.torch.Acco(model.parameters(), torch.optim.AdamW, lr=1e-3)
        for inputs, labels in data:  # each time half of a batch
            ...                      # forward, backward, clipping as ever
            optimizer.step()         # returns with weights to go on with
        optimizer.finish()           # before evaluating or saving the model

    Nabli et al., "ACCO: Accumulate While You Communicate for Communication-Overlapped Sharded LLM
    Training", NeurIPS 2025 (arXiv 2406.02613); the order of updates is that of the authors' code.
    The owners keep weights W and the optimizer's state, as for ShardedOptimizer. Two calls of
    step() are one round, and one step of the optimizer f:

        first   has g', the gradient at V, an estimate of W. Waits until W is here, asks the owners
                for V' = f(W, g'), of which they keep nothing, and goes on at W.
        second  has g, the gradient at W. Waits for V', asks for W' = f(W, (g' + g) / 2), which the
                owners keep, and goes on at V'.

    V of the first round is W. So a round travels while the next half is computed, never longer; no
    gradient is older than the half before it, there is no warm-up, and any optimizer will do. As
    many bytes travel for each half as ShardedOptimizer sends for each step. The gradient of the
    first half waits in the memory from which it was sent. Where a round takes longer than computing,
    the next one is asked for before it is through, and waits at the daemons: its gradients take as
    much memory again.

    The optimizer steps once in two calls: an update counts for both. What it does is what the param
    groups say at the second call, and for the estimate at the first one. A scheduler that is to go
    on once in each update is stepped after every second call.

    Between steps all ranks have the same bits, but parameters may be the estimate. finish() makes
    them W, on all ranks, and training may go on after it. A half that has no second one is applied
    by itself then. Call it also before parameters are changed by anybody else: a change in the
    middle of a round is refused. What fails on the way is raised by the next step(), or by finish().

    Gradients, DistributedDataParallel and GradScaler are as for ShardedOptimizer. A half that a
    scaler leaves out is as if it had not been.

    state_dict() is a collective, has torch's format, and changes nothing in training. In the middle
    of a round it also has the owners' weights, the mean of the first half's gradients and what was
    estimated from them. So a run that loads it, after the model, goes on as this one would.
    """

    def __init__(self, params: Any, optimizer_class: Any, **options: Any) -> None:
        """Arguments are those of ShardedOptimizer. There is nothing to overlap: step() does not wait
        for what it sends. An estimate uses what a codec holds back, and leaves it as it is.
        """
        for name in _OVERLAPS:
            if name in options:
                raise TypeError(f"Acco hides communication behind whole half batches: no {name}")
        # Whether the next step() is the second of its round.
        self._is_second = False
        # Whether parameters may be an estimate, or a half is not applied yet.
        self._is_under_way = False
        # What parameters are to become with the next step(), where it is no round's result; first
        # halves that were loaded. By the parameter's id.
        self._arrived: dict[int, torch.Tensor] = {}
        self._first_halves: dict[int, torch.Tensor] = {}
        super().__init__(params, optimizer_class, **options)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes half a step on all ranks; the parameters are then what the next half is to use."""
        loss = loss_of(closure)
        for parameter in self._parameters():
            refuse_gradient(parameter, self.name)
        # Where the network is the limit it has the next gradients before the last round is through.
        ahead = not self._rounds.done() and self._prepared().make_room_ahead()
        if not ahead:
            self._rounds.wait()
        if not self._is_to_be_left_out():
            self._submit_half(ahead)
        return loss

    @torch.no_grad()
    def finish(self) -> None:
        """Makes the parameters the owners' weights after all steps. A collective. After an odd
        number of steps it applies the half that is left, with what the param groups say now."""
        if not self._is_under_way:
            return
        self._rounds.wait()
        kept = self._prepared()
        # Whatever somebody has written into parameters is overwritten.
        kept.keep_versions(kept.known())
        kept.prepare(self._rule.slots(self.param_groups))
        if self._is_second:
            # The estimate comes once more, to be kept.
            self._drop_results()
            self._rounds = self._apply_halves(kept, None)
        self._arrive(kept)
        if self._pull_flags:
            kept.fetch_weights(write_to_parameter)
        self._is_second = self._is_under_way = False

    def synchronize(self) -> None:
        """Waits until nothing is on its way any more. Parameters stay as they are."""
        self._rounds.wait()

    def reload(self) -> None:
        """The next step() gives the owners the parameters as they are then on the first rank."""
        if self._is_under_way:
            raise RuntimeError(f"{self.name}: call finish() before parameters are changed")
        super().reload()

    @torch.no_grad()
    def state_dict(self) -> dict[str, Any]:
        """As the wrapped optimizer of torch has it, with the state of all owners, in CPU memory."""
        if not self._is_under_way:
            return super().state_dict()
        kept = self._prepared()
        self._refuse_changes(kept)
        self._rounds.take_all(self._keep_for_later)
        first_halves = self._averaged_first_halves(kept) if self._is_second else {}
        state_dict = super().state_dict()
        places = places_of(state_dict)
        for place, parameter in zip(places, self._parameters()):
            entry = state_dict["state"].get(place)
            if entry is None:
                continue
            entry[_HALVES] = 1 if self._is_second else 2
            if self._is_second:
                half = first_halves.get(id(parameter), torch.zeros_like(parameter, device="cpu"))
                estimate = self._arrived.get(id(parameter), parameter.detach())
                entry[_FIRST_HALF] = half.cpu().clone()
                entry[_ESTIMATE] = estimate.cpu().clone()
        return state_dict

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the state of this optimizer or of torch's wrapped one, after the model has its
        parameters. Results that are on their way are dropped. The next step() sends the state to the
        owners."""
        self._drop_results()
        self._first_halves = {}
        self._is_second = self._is_under_way = False
        super().load_state_dict(state_dict)

    def _submit_half(self, ahead: bool) -> None:
        kept = self._prepared()
        self._refuse_changes(kept)
        kept.prepare(self._rule.slots(self.param_groups))
        if self._is_second:
            rounds = self._apply_halves(kept, self._gradient_of, ahead=ahead)
        else:
            settings = self._settings()
            rounds = Rounds(
                [each.estimate(settings, self._gradient_of, ahead=ahead) for each in kept.sets]
            )
        # Only now: the network has its work meanwhile.
        self._arrive(kept)
        self._rounds = rounds
        self._is_second = not self._is_second
        self._is_under_way = True

    def _apply_halves(
        self,
        kept: KeptWeights,
        second: Callable[[torch.Tensor], torch.Tensor | None] | None,
        *,
        ahead: bool = False,
    ) -> Rounds:
        if self._first_halves:
            for weight in (weight for weights in kept.sets for weight in weights):
                weight.give_first_half(self._first_halves.get(id(weight.parameter)))
        settings = self._settings()
        rounds = Rounds([each.apply_halves(settings, second, ahead=ahead) for each in kept.sets])
        self._first_halves = {}
        return rounds

    def _arrive(self, kept: KeptWeights) -> None:
        """Parameters become what the last round has brought."""
        arrived, self._arrived = self._arrived, {}
        for parameter in self._parameters():
            if id(parameter) in arrived:
                parameter.data.copy_(arrived[id(parameter)])
        self._rounds.take_all(write_to_parameter)

    def _drop_results(self) -> None:
        self._arrived = {}
        self._rounds.take_all()

    def _keep_for_later(self, weight: Weight, result: torch.Tensor) -> None:
        shaped = result.view(weight.parameter.shape)
        self._arrived[id(weight.parameter)] = shaped.to(weight.parameter.device, copy=True)

    def _averaged_first_halves(self, kept: KeptWeights) -> dict[int, torch.Tensor]:
        """The mean over all ranks, of which the owners' step makes the same as of each rank's own."""
        if self._first_halves:
            return self._first_halves
        halves: dict[int, torch.Tensor] = {}
        for weights in kept.sets:
            wide = torch.float64 if weights.dtype == torch.float64 else torch.float32
            # Each has its half: the state is asked for in the middle of a round.
            of_set = [weight.first_half.to(wide, copy=True) for weight in weights]
            self._group.allreduce(of_set, ReduceOp.AVG).wait()
            for weight, half in zip(weights, of_set):
                halves[id(weight.parameter)] = half.view(weight.parameter.shape)
        return halves

    def _state_of(self, parameter: torch.Tensor, entry: dict[str, Any]) -> State:
        state = super()._state_of(parameter, entry)
        if _HALVES not in entry:
            return state
        kept = self._prepared()
        self._is_under_way = True
        self._is_second = entry[_HALVES] == 1
        if self._is_second:
            self._first_halves[id(parameter)] = entry[_FIRST_HALF].cpu()
            following = entry[_ESTIMATE]
        else:
            following = kept.rounded(state.slots[WEIGHTS].cpu(), parameter)
        self._arrived[id(parameter)] = following.to(parameter.device, copy=True)
        kept.keep_versions([parameter])
        return state._replace(has_weights=True)

    def _saves_weights(self, parameter: torch.Tensor) -> bool:
        return self._is_under_way or super()._saves_weights(parameter)

    def _refuse_changes(self, kept: KeptWeights) -> None:
        changed = kept.changed_names() if self._is_under_way else []
        if changed:
            shown = ", ".join(changed[:_NAMES_SHOWN]) + (" …" if changed[_NAMES_SHOWN:] else "")
            raise RuntimeError(
                f"{self.name}: somebody has changed {shown} in the middle of a round; call finish() "
                "on all ranks before parameters are changed, and load a state after the model's"
            )
