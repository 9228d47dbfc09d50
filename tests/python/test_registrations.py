# SPDX-License-Identifier: Apache-2.0
"""Models that are wrapped anew: memory goes with a model, and the next one of its form takes its registration."""

from __future__ import annotations

import weakref
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from cluster_runs import once, run

torch = pytest.importorskip("torch")


MIB = 1 << 20
# For small collectives, and for what DDP broadcasts at first.
OTHERS_MIB = 8


class User:
    """A model, of which only its life counts."""


class Jobs:
    """An engine whose job notes what is registered."""

    def __init__(self) -> None:
        self.names: list[list[str]] = []
        self.gone: list[list[int]] = []
        self.error: Exception | None = None
        self.job = SimpleNamespace(name="job", register=self.register, unregister=self.unregister)

    def register(self, specs: Any) -> list[int]:
        first = sum(map(len, self.names))
        self.names.append([spec.name for spec in specs])
        return list(range(first, first + len(specs)))

    def unregister(self, handles: Any) -> None:
        if self.error is not None:
            raise self.error
        self.gone.append(list(handles))


def members(*sizes: int, codec: str = "") -> list[Any]:
    from braid.torch.ddp.planned_tensors import Gradient, Member

    return [
        Member((Gradient(f"g{place}", torch.empty(size), torch.float32, codec),)) for place, size in enumerate(sizes)
    ]


class Used:
    """A place, and what each of its users gets."""

    def __init__(self) -> None:
        from braid.torch.ddp.registrations import Place

        self.engine = Jobs()
        self.place = Place("ddp1")
        self.user: Any = None

    def next(self, tensors: list[Any], first_step: int = 0) -> Any:
        if self.user is not None:
            self.user = None
            self.place.leave()
        self.user = User()
        self.place.take(self.user, first_step)
        return self.place.registration_of(self.user, self.engine, tensors)


def test_the_next_model_of_a_form_takes_the_registration():
    used = Used()
    first = used.next(members(3, 4))
    assert used.next(members(3, 4)) is first
    assert used.engine.names == [["ddp1/g0", "ddp1/g1"]]


def test_its_steps_follow_those_that_any_rank_has_begun():
    used = Used()
    used.next(members(3)).next_step = 7
    assert used.place.next_step() == 7
    assert used.next(members(3), first_step=9).next_step == 9


@pytest.mark.parametrize("tensors", [members(3, 5), members(3), members(4, 3)], ids=["size", "fewer", "order"])
def test_a_model_of_another_form_gets_names_of_its_own(tensors):
    used = Used()
    first = used.next(members(3, 4))
    second = used.next(tensors)
    assert second is not first and second.next_step == 0
    assert [name.split("/")[0] for names in used.engine.names for name in names[:1]] == ["ddp1", "ddp1.2"]


def test_what_a_codec_has_lost_of_a_model_is_not_the_next_ones():
    used = Used()
    assert used.next(members(3, codec="int8")) is not used.next(members(3, codec="int8"))


def test_a_registration_goes_when_the_next_model_is_another_one():
    used = Used()
    used.next(members(3, 4)).add([70, 71])
    used.next(members(3, 4))
    assert used.engine.gone == []
    used.next(members(5))
    assert used.engine.gone == [[0, 1], [70, 71]]
    used.next(members(6))
    assert used.engine.gone[2:] == [[2]]


def test_what_nobody_can_take_over_goes_with_its_model():
    used = Used()
    used.next(members(3, codec="int8"))
    used.place.leave()
    assert used.engine.gone == [[0]]
    used.place.leave()
    assert used.engine.gone == [[0]]
    assert used.place.next_step() == 0


def test_a_registration_stays_as_long_as_one_of_its_users():
    used = Used()
    used.next(members(3))
    used.place.registration_of(User(), used.engine, members(4))
    assert used.engine.gone == []


def test_what_an_error_has_left_in_flight_stays_and_training_goes_on():
    from braid.errors import InvalidArgumentError

    used = Used()
    used.next(members(3))
    used.engine.error = InvalidArgumentError("still has ticket 1")
    assert used.next(members(4)).handles == [1]


def test_a_place_is_free_when_all_its_users_are_gone():
    used = Used()
    used.next(members(3))
    assert not used.place.is_free()
    used.user = None
    assert used.place.is_free()


def test_memory_goes_with_its_owner():
    from braid.torch.operations.lent_memory import LentMemory

    freed, asked = [], []
    job = SimpleNamespace(allocate=lambda nbytes: SimpleNamespace(address=nbytes, nbytes=nbytes), free=freed.append)
    lent = LentMemory(job, asked.append)
    owner = User()
    memory = lent.take(owner, 64)
    gone = weakref.ref(owner)
    assert not asked
    del owner
    assert gone() is None and asked == [lent] and not freed
    # Whichever comes first does it: the thread that was asked, or the next one that takes memory.
    lent.take(User(), 32)
    assert freed[0] is memory
    lent.complete()
    assert len(freed) == 2


@cache
def wrapped(way: str) -> list[Any]:
    return [result["rows"] for result in run("wrapped_anew.py", way, nodes=2, ranks_per_node=1).expect(2)]


@pytest.mark.parametrize("way", ["same", pytest.param("apart", marks=once), pytest.param("growing", marks=once)])
def test_every_model_gets_its_own_gradients(way):
    assert all(row["right"] for rows in wrapped(way) for row in rows)


def most_held(rows: list[Any]) -> int:
    return max(row["arenas"] for row in rows)


def test_after_the_second_model_nothing_grows():
    for rows in wrapped("same"):
        # The model before is still there while the next one is wrapped: two registrations take turns.
        assert most_held(rows) <= (2 * 16 + OTHERS_MIB) * MIB
        assert len({tuple(row["handles"]) for row in rows}) == 2


@once
def test_ranks_that_let_go_at_different_times_agree():
    first, second = wrapped("apart")
    assert [row["handles"] for row in first] == [row["handles"] for row in second]
    for rows in (first, second):
        assert most_held(rows) <= (4 * 16 + OTHERS_MIB) * MIB
        assert len({tuple(row["handles"]) for row in rows}) <= 4


@once
def test_models_of_other_forms_leave_no_tensors():
    for rows in wrapped("other"):
        assert len(rows) == 20 and all(row["right"] for row in rows)
        # The model before is still there while the next one is wrapped; beside those of models there are two streams.
        assert max(row["tensors"] - len(row["handles"]) for row in rows) <= 20 + 2
        assert len({handle for row in rows for handle in row["handles"]}) == sum(range(1, 21))


@once
def test_models_of_other_forms_take_memory_that_earlier_ones_have_left():
    for rows in wrapped("growing"):
        # The last two models have that much, and as much between them. All ten have 205.
        assert most_held(rows) <= 2 * (24 + 25) * MIB
