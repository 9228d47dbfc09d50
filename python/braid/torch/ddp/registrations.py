# SPDX-License-Identifier: Apache-2.0
"""What the daemons know of a model's planned tensors. The next model of the same form may take it.

A script may wrap models again and again, for the folds of a cross-validation or the phases of a
training. A model that is gone leaves its registration to a later one whose tensors have the same
names, types and sizes: with it come the plans that were learned. Where the next model is another
one, the registration goes. The memory of the inputs goes when the model does.

Python frees a model when it likes, at different times on different ranks. So ranks vote, where the
next model is wrapped, on which places are free on all of them.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from typing import Any

import torch

from braid import DType, Reduction
from braid.torch.ddp.planned_tensors import Member
from braid.torch.operations.engine import ALL_REDUCE, Engine
from braid.torch.operations.packing import unpack_whole
from braid.torch.operations.work import BraidWork
from braid.torch.planned.tensors import register, unregister


class Registration:
    """Planned tensors of a job. They are submitted in steps that grow, whichever model does it."""

    def __init__(self, engine: Engine, prefix: str, members: Sequence[Member]) -> None:
        self._forms = [member.form for member in members]
        self._job = engine.job
        self._beside: list[Sequence[int]] = []
        self.handles = register(
            engine.job, [form._replace(name=f"{prefix}/{form.name}") for form in self._forms]
        )
        # A codec keeps what it has lost of one model's gradients, which is not another one's.
        self.is_plain = not any(member.form.codec or member.shape for member in members)
        self.next_step = 0

    def fits(self, members: Sequence[Member]) -> bool:
        """Whether these tensors are what it is of."""
        return self.is_plain and self._forms == [member.form for member in members]

    def add(self, handles: Sequence[int]) -> None:
        """What was registered beside it, for the same model."""
        self._beside.append(handles)

    def end(self) -> None:
        """After the last step: nobody takes it any more."""
        for handles in (self.handles, *self._beside):
            unregister(self._job, handles)


class Place:
    """A model's place among those of a process group; the same on all ranks."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._registered = 0
        self._registration: Registration | None = None
        self._is_left = False  # Who has used it is gone.
        self._users: list[weakref.ref[Any]] = []
        # The first step that the place's latest user may submit, on all ranks.
        self._first_step = 0

    @property
    def prefix(self) -> str:
        """Before the names of its tensors."""
        return self._name if self._registered < 2 else f"{self._name}.{self._registered}"

    def registration_of(
        self, user: Any, engine: Engine, members: Sequence[Member]
    ) -> Registration:
        """For a user that has the place: the one that is there, if it fits, or a new one."""
        found = self._registration
        if found is None or not found.fits(members):
            self._end_what_is_left()
            self._registered += 1
            found = Registration(engine, self.prefix, members)
            self._registration = found
        else:
            found.next_step = max(found.next_step, self._first_step)
        self._is_left = False
        self._users.append(weakref.ref(user))
        return found

    def take(self, user: Any, first_step: int) -> None:
        self._users = [weakref.ref(user)]
        self._first_step = first_step

    def leave(self) -> None:
        """All who have used it are gone, on all ranks. What nobody can take over goes at once."""
        self._is_left = True
        if self._registration is not None and not self._registration.is_plain:
            self._end_what_is_left()

    def _end_what_is_left(self) -> None:
        if self._registration is not None and self._is_left:
            self._registration.end()
            self._registration = None

    def is_free(self) -> bool:
        """Whether all who have used it are gone, and with them what they had in flight."""
        return all(user() is None for user in self._users)

    def next_step(self) -> int:
        return self._registration.next_step if self._registration is not None else 0


_places: weakref.WeakKeyDictionary[Any, list[Place]] = weakref.WeakKeyDictionary()


def place_for(user: Any, group: Any) -> Place:
    """A place of the group's, taken as long as `user` lives. All ranks call it together."""
    places = _places.setdefault(group, [])
    if places:
        if not all(place.is_free() for place in places):
            gc.collect()  # Models are often parts of cycles.
        free = [int(place.is_free()) for place in places]
        votes = _minima(group.engine, [*free, *(-place.next_step() for place in places)])
        free_places = []
        for place, is_free, step in zip(places, votes, votes[len(places) :]):
            if is_free:
                place.leave()
                free_places.append((place, -step))
        if free_places:
            place, step = free_places[0]
            place.take(user, step)
            return place
    place = Place(group.next_prefix())
    place.take(user, 0)
    places.append(place)
    return place


def _minima(engine: Engine, values: list[int]) -> list[int]:
    """The least of all ranks' values, for each place."""
    tensor = torch.tensor(values, dtype=torch.int64)
    work = BraidWork(tensor)
    engine.run(
        ALL_REDUCE, int(DType.INT64), len(values), [tensor], unpack_whole([tensor]), work,
        reduction=int(Reduction.MIN),
    )  # fmt: skip
    work.wait()
    return tensor.tolist()
