# SPDX-License-Identifier: Apache-2.0
"""What ranks tell their daemons of placed work, by K-FAC and by placed optimizers; on ranks that are threads."""

from __future__ import annotations

import time
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.once

from in_process import run_ranks  # noqa: E402
from kfac_models import make_model, train  # noqa: E402
from placed_models import SHAPES, give_gradients, make_parameters, optimizer_of  # noqa: E402

RANKS = 2


@pytest.fixture
def all_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of updates that follow each other quickly."""
    from braid.torch.operations import placed_work

    monkeypatch.setattr(placed_work, "_TELL_EVERY_NS", 0)


def told_by(work: Any, name: str) -> list[tuple[Any, ...]]:
    """What all ranks have told of the work of this name, in order: rank, items, spans, load."""
    _, told = run_ranks(RANKS, lambda group, world: (work(group), world.told))[0]
    return [(rank, items, spans, load) for rank, which, items, spans, load in told if which == name]


def train_kfac(group: Any, steps: int = 4, **options: Any) -> None:
    from braid.torch.kfac import KFAC

    model = make_model()
    train(model, KFAC(model, process_group=group, **options), range(steps), group.rank(), RANKS)
    group.barrier().wait()


def step_placed(group: Any, steps: int = 4) -> None:
    import braid.torch

    parameters = make_parameters()
    placed = braid.torch.placed(optimizer_of("AdamW", parameters), process_group=group)
    for step in range(steps):
        give_gradients(parameters, step, range(group.rank(), group.rank() + 1))
        placed.step()
    group.barrier().wait()


def test_each_rank_tells_of_the_inverses_that_it_makes_and_waits_for(all_is_told):
    now = time.monotonic_ns()
    told = told_by(train_kfac, "inverses")
    assert {rank for rank, *_ in told} == set(range(RANKS))
    for rank, items, spans, load in told:
        own = {items[span.item].name for span in spans if not span.is_wait}
        assert own == {item.name for item in items if item.seconds > 0}
        for span in spans:
            owner = items[span.item].owner
            assert owner != rank if span.is_wait else owner in (rank, None)
            assert now < span.begin_ns <= span.end_ns < time.monotonic_ns()
        assert load.seconds == pytest.approx(sum(item.seconds for item in items))
    for number in range(4):  # All ranks together tell of all items in each update.
        of_update = [(items, spans) for _, items, spans, load in told if load.updates == number + 1]
        assert len(of_update) == RANKS
        made = [items[span.item].name for items, spans in of_update for span in spans if not span.is_wait]
        assert len(set(made)) == 8 and all(name.endswith((".A", ".G")) for name in made)


def test_a_placement_is_told_with_what_it_expects(all_is_told):
    told = told_by(train_kfac, "inverses")
    for rank, items, _, load in told:
        if load.updates == 1:  # Nothing was measured yet.
            assert load.planned_seconds == load.makespan_seconds == 0
            assert all(item.least_seconds == 0 for item in items)
        else:
            assert 0 < load.bound_seconds <= load.makespan_seconds and load.planned_seconds >= 0
            assert all(item.least_seconds > 0 for item in items if item.seconds > 0)


def test_where_nothing_is_placed_there_is_no_plan(all_is_told):
    for mode in ("mpd", "d", "dp"):
        told = told_by(lambda group, mode=mode: train_kfac(group, mode=mode), "inverses")
        assert told and all(load.planned_seconds == 0 for *_, load in told), mode


def test_factors_are_spans_without_a_load(all_is_told):
    told = told_by(train_kfac, "factors")
    assert told and all(load is None for *_, load in told)
    assert {item.name for _, items, *_ in told for item in items} >= {"0.A", "0.G", "7.A", "7.G"}


def test_a_placed_optimizer_tells_of_its_updates(all_is_told):
    told = told_by(step_placed, "updates")
    for number in range(4):
        of_step = [(items, spans) for _, items, spans, load in told if load.updates == number + 1]
        made = [items[span.item].name for items, spans in of_step for span in spans if not span.is_wait]
        assert len(made) == len(SHAPES) == len(set(made))


def test_quick_updates_are_told_together(monkeypatch):
    from braid.torch.operations import placed_work

    monkeypatch.setattr(placed_work, "_TELL_EVERY_NS", 10**15)
    # The first one is told at once where the clock is young; none of the others is.
    assert len(told_by(train_kfac, "inverses")) <= RANKS


def test_more_is_told_than_one_message_takes(all_is_told):
    from braid.torch.operations.placed_work import PlacedWork

    class Heard:
        def tell_work(self, *told: Any) -> None:
            self.told = told

    heard = Heard()
    work = PlacedWork(heard, "inverses")
    work.begin_update()
    for number in range(5000):
        work.computed(f"{'é' * 200}{number}", 0, time.monotonic_ns())
    work.end_update()
    _, items, spans, load = heard.told
    assert len(items) == 1024 and spans and all(span.item < 1024 for span in spans)
    assert all(len(item.name.encode()) <= 255 for item in items) and load.seconds > 0
