# SPDX-License-Identifier: Apache-2.0
"""Parameters as weights that the daemons keep and update: planned tensors with state slots.

A trainer submits a gradient for each of them, and what comes back are new weights, of which each
node has updated a part. That part of the optimizer's state is nowhere else. A step of these tensors
is a round: it submits all of them with one action (see planned/tensors.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch

from braid import BraidError, Reduction
from braid.torch.operations import devices
from braid.torch.operations.engine import Engine
from braid.torch.operations.explaining import explain_once
from braid.torch.operations.failures import as_distributed
from braid.torch.planned.tensors import TENSORS_MAX, Place, lay_out, register, unregister
from braid.torch.weights.rounds import OpenRound, Round
from braid.torch.weights.weight import (
    ESTIMATE,
    FETCH,
    HIGH_BITS,
    LOAD,
    LOW_BITS,
    NO_SETTINGS,
    ROUNDED,
    Settings,
    Weight,
    WeightSpec,
)

_LOW_BITS_MASK = 0xFFFF
_AVERAGE = int(Reduction.AVERAGE)


class WeightSet:
    """Parameters of one type, kept and updated by the daemons. One thread at a time uses them.

    One round at a time: of the one before all results must be here. Only what goes `ahead` may begin
    earlier; then one round waits at the daemons for the end of the other. What failed once stays
    failed.
    """

    def __init__(self, engine: Engine, name: str, specs: Sequence[WeightSpec], slots: int) -> None:
        """`specs` in the order of the model, `slots` of values that the owner keeps for an element.

        `name` is the same on all ranks, and of no other set of this engine.
        """
        if len(specs) > TENSORS_MAX:
            raise ValueError(
                f"{len(specs)} parameters are to be updated by the daemons, {TENSORS_MAX} are "
                "the most: merge small ones, or divide them between several optimizers"
            )
        self.name = f"{engine.job.name} {name}"
        self.slots = slots
        self.dtype = specs[0].parameter.dtype
        self._engine = engine
        self._step = -1
        # The last two; what is on its way reads each one's own inputs.
        self._round: Round | None = None
        self._former: Round | None = None
        specs = list(reversed(specs))
        self._forms = [spec.form for spec in specs]
        try:
            self._handles = register(engine.job, self._forms, slots)
            self._inputs = self._new_inputs()
        except BraidError as error:
            raise as_distributed(error) from error
        self._other_inputs: list[Place] | None = None
        self._weights = [
            self._weight(spec, place, handle)
            for spec, place, handle in zip(specs, self._inputs, self._handles)
        ]
        self._by_id = {id(weight.parameter): weight for weight in self._weights}
        explain_once(engine.job)

    def __iter__(self) -> Iterable[Weight]:
        """In backward order."""
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)

    def __contains__(self, parameter: torch.Tensor) -> bool:
        return id(parameter) in self._by_id

    def weight_of(self, parameter: torch.Tensor) -> Weight:
        return self._by_id[id(parameter)]

    @property
    def rounds(self) -> int:
        """How many have been submitted."""
        return self._step + 1

    def begin(self, *, ahead: bool = False) -> OpenRound:
        """Opens a round, to be submitted tensor by tensor. All of them get one action. With `ahead`
        the round before may be on its way; make_room_ahead() must have been True."""
        before = self._round
        if before is not None:
            if before.error is not None:
                raise before.error
            if not before.has_arrived:
                self._turn_inputs(ahead)
        self._former, self._round = before, Round(self._engine, self.name)
        parameters = [weight.parameter for weight in self._weights]
        self._round.entry = self._engine.record.add("all_reduce", parameters, parameters)
        self._step += 1
        return OpenRound(self._round, self._weights, self._step)

    def make_room_ahead(self) -> bool:
        """Memory for the input of a second round. False: the job's arenas may not grow by so much."""
        if self._other_inputs is None and not self._is_on_device():
            try:
                self._other_inputs = self._new_inputs()
            except BraidError:
                return False
        return True

    def end(self) -> None:
        """After the last round: the set is not used any more."""
        unregister(self._engine.job, self._handles)
        for inputs in (self._inputs, self._other_inputs):
            if inputs is not None:
                self._engine.job.free(inputs[0].memory)  # With it goes the whole block.

    def load(
        self, slot: int, values: Callable[[Weight], torch.Tensor | None], bits: int = ROUNDED
    ) -> Round:
        """Sets the owners' values of a slot; None stands for zeros. The same on all ranks: each
        owner takes those of its own node, and the round's results are what the owners took."""

        def prepare(weight: Weight) -> None:
            weight.give(values(weight))
            weight.ask(LOAD, NO_SETTINGS, slot, bits)

        return self._submit(prepare)

    def fetch(self, slot: int, bits: int = ROUNDED) -> Round:
        """The owners' values of a slot are the round's results."""
        return self._submit(lambda weight: weight.ask(FETCH, NO_SETTINGS, slot, bits))

    def apply(
        self,
        settings: Callable[[torch.Tensor], Settings],
        gradient: Callable[[torch.Tensor], torch.Tensor | None],
        *,
        pull: bool = True,
        ahead: bool = False,
    ) -> Round:
        """Averages gradients over all ranks and updates the weights, which are the round's results.

        `gradient` of None stands for zeros. Without `pull` the weights stay with their owners.
        `ahead` is begin()'s.
        """

        def prepare(weight: Weight) -> None:
            weight.give_gradient(gradient(weight.parameter))
            weight.ask_for_update(settings(weight.parameter), pull=pull)

        return self.begin(ahead=ahead).close(prepare)

    def estimate(
        self,
        settings: Callable[[torch.Tensor], Settings],
        gradient: Callable[[torch.Tensor], torch.Tensor | None],
        *,
        ahead: bool = False,
    ) -> Round:
        """What apply() would give now, with the same bits: the owners keep what they have, and
        parameters their counts. The gradients stay where they are, as first halves. `ahead` is
        begin()'s."""

        def prepare(weight: Weight) -> None:
            weight.give_first_half(gradient(weight.parameter))
            weight.ask(ESTIMATE, settings(weight.parameter), count=weight.count + 1)

        return self.begin(ahead=ahead).close(prepare)

    def apply_halves(
        self,
        settings: Callable[[torch.Tensor], Settings],
        second: Callable[[torch.Tensor], torch.Tensor | None] | None,
        *,
        ahead: bool = False,
    ) -> Round:
        """apply() with the means of the first halves and of `second`; None: with first halves alone.
        A first half that is not there counts as zeros. `ahead` is begin()'s."""

        def prepare(weight: Weight) -> None:
            if second is not None:
                weight.give_second_half(second(weight.parameter))
            else:
                weight.give_only_half()
            weight.ask_for_update(settings(weight.parameter))

        return self.begin(ahead=ahead).close(prepare)

    def load_exactly(self, slot: int, values: Callable[[Weight], torch.Tensor | None]) -> None:
        """load() of values in the type in which owners keep them, whole rounds."""
        if self.dtype not in (torch.float16, torch.bfloat16):
            self.load(slot, values).take_all()
            return
        halves = {HIGH_BITS: 16, LOW_BITS: 0}
        for bits, shift in halves.items():
            self.load(slot, lambda w, s=shift: _half(w, values(w), s), bits).take_all()

    def fetch_exactly(self, slot: int) -> dict[torch.Tensor, torch.Tensor]:
        """The owners' values of a slot by parameter, in the type in which owners keep them."""
        if self.dtype not in (torch.float16, torch.bfloat16):
            got: dict[torch.Tensor, torch.Tensor] = {}
            self.fetch(slot).take_all(lambda w, r: got.update({w.parameter: _shaped(w, r.clone())}))
            return got
        halves: list[dict[torch.Tensor, torch.Tensor]] = []
        for bits in (HIGH_BITS, LOW_BITS):
            half: dict[torch.Tensor, torch.Tensor] = {}
            self.fetch(slot, bits).take_all(
                lambda w, r, half=half: half.update({w.parameter: r.view(torch.int16).int()})
            )
            halves.append(half)
        return {
            weight.parameter: _shaped(
                weight,
                (halves[0][weight.parameter] << 16
                 | halves[1][weight.parameter] & _LOW_BITS_MASK).view(torch.float32),
            )
            for weight in self._weights
        }  # fmt: skip

    def _weight(self, spec: WeightSpec, place: Place, handle: int) -> Weight:
        job, on_devices = self._engine.job, self._engine.on_devices
        operation = job.repeated_update(handle, place.memory)
        from_device = job.repeated_device(handle, _AVERAGE, operation.update)
        return Weight(spec, place, operation, from_device, on_devices.serves)

    def _is_on_device(self) -> bool:
        cuda, serves = devices.cuda, self._engine.on_devices.serves
        parameters = [weight.parameter for weight in self._weights]
        return all(cuda.holds(each) and serves(cuda.device_of(each)) for each in parameters)

    def _new_inputs(self) -> list[Place]:
        """Raises BraidError where the job's arenas may not grow by so much."""
        return lay_out(self._forms, self._engine.job.allocate)

    def _turn_inputs(self, ahead: bool) -> None:
        """The next round's input lies where the one on its way does not read."""
        is_free = self._former is None or self._former.has_arrived
        is_on_device = self._is_on_device()
        if not ahead or not is_free or not (is_on_device or self._other_inputs):
            raise RuntimeError(f"a round of {self.name} begins before the last one has ended")
        if is_on_device:
            return  # Each round has inputs of its own.
        self._inputs, self._other_inputs = self._other_inputs, self._inputs
        for weight, place in zip(self._weights, self._inputs):
            weight.move(place)

    def _submit(self, prepare: Callable[[Weight], None]) -> Round:
        """Submits every tensor, each with what `prepare` makes ready."""
        return self.begin().close(prepare)


def _shaped(weight: Weight, values: torch.Tensor) -> torch.Tensor:
    return values.view(weight.parameter.shape)


def _half(weight: Weight, values: torch.Tensor | None, shift: int) -> torch.Tensor | None:
    """The upper or lower 16 bits of float32 values, as a 16-bit set takes them."""
    if values is None:
        return None
    bits = values.detach().cpu().float().contiguous().view(torch.int32)
    return (bits >> shift).to(torch.int16).view(weight.view.dtype)
