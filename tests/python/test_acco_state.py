# SPDX-License-Identifier: Apache-2.0
"""Acco's state: saved and loaded between rounds and in the middle of one; on ranks that are threads."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.once

from thread_runs import MOMENTUM, RANKS, AccoTraining, assert_close, equal, gradient  # noqa: E402
from in_process import run_ranks  # noqa: E402

KINDS = [
    (torch.optim.AdamW, torch.float64, {}),
    (torch.optim.SGD, torch.float64, {}),
    (torch.optim.SGD, torch.float64, MOMENTUM),
    ("lion", torch.float64, {"lr": 0.01}),
    (torch.optim.AdamW, torch.bfloat16, {}),
    (torch.optim.AdamW, torch.float32, {"pull": "bf16"}),
]


def loaded(group: Any, values: list[Any], state: Any, begun: int = 0, **options: Any) -> AccoTraining:
    training = AccoTraining(group, **options).train(0, begun)
    with torch.no_grad():
        for parameter, saved in zip(training.parameters, values):
            parameter.copy_(saved)
    training.optimizer.load_state_dict(copy.deepcopy(state))
    return training


@pytest.mark.parametrize("at", [1, 2, 7, 8])
@pytest.mark.parametrize(("kind", "dtype", "options"), KINDS, ids=str)
def test_a_run_that_is_loaded_goes_on_as_the_one_that_was_saved(kind, dtype, options, at):
    def work(group: Any, _: Any) -> list[list[Any]]:
        options_of = {"kind": kind, "dtype": dtype, **options}
        whole, saved = AccoTraining(group, **options_of).train(0, 15), AccoTraining(group, **options_of).train(0, at)
        values, state = saved.values(), copy.deepcopy(saved.optimizer.state_dict())
        again = loaded(group, values, state, **options_of)
        used = loaded(group, values, again.optimizer.state_dict(), begun=5, **options_of)
        ends = []
        for training in (whole, saved, again, used):
            ends.append(training.train(15 if training is whole else at, 15).values())
            ends.append(training.finished())
        return ends

    whole, whole_end, saved, saved_end, *others = run_ranks(2, work)[0]
    assert equal(whole, saved) and equal(whole_end, saved_end), "saving changes nothing"
    # The mean of first halves is another sum of the same numbers.
    close = {torch.float64: 1e-12, torch.float32: 1e-2, torch.bfloat16: 5e-2}[dtype] if at % 2 else 0.0
    for mine, expected in zip(others, [whole, whole_end] * 2):
        assert all(torch.allclose(a, b, rtol=close, atol=close) for a, b in zip(mine, expected))


@pytest.mark.parametrize("at", [4, 5])
def test_a_state_may_be_finished_before_any_step(at):
    def work(group: Any, _: Any) -> list[list[Any]]:
        saved = AccoTraining(group).train(0, at)
        values, state = saved.values(), copy.deepcopy(saved.optimizer.state_dict())
        again = loaded(group, values, state)
        for parameter in again.parameters:
            parameter.grad = None
        return [saved.finished(), again.finished()]

    for saved, again in run_ranks(2, work):
        assert_close(again, saved)


@pytest.mark.parametrize("at", [6, 7])
def test_the_state_goes_to_a_job_of_another_size(at):
    def same(call: int, parameters: list[Any]) -> None:
        for parameter in parameters:
            parameter.grad = gradient(call, 0, parameter)

    def train(training: AccoTraining, first: int, last: int) -> AccoTraining:
        for call in range(first, last):
            same(call, training.parameters)
            training.optimizer.step()
        return training

    def first(group: Any, _: Any) -> tuple[list[Any], Any, list[Any]]:
        training = train(AccoTraining(group), 0, at)
        values, state = training.values(), copy.deepcopy(training.optimizer.state_dict())
        return values, state, train(training, at, 12).finished()

    values, state, end = run_ranks(3, first)[0]
    for mine in run_ranks(2, lambda group, _: train(loaded(group, values, state), at, 12).finished()):
        assert_close(mine, end)


def test_a_finished_state_is_that_of_torchs_optimizer():
    def work(group: Any, _: Any) -> tuple[list[Any], Any]:
        training = AccoTraining(group).train(0, 7)
        return training.finished(), training.optimizer.state_dict()

    values, state = run_ranks(RANKS, work)[0]
    parameters = [torch.nn.Parameter(each) for each in values]
    optimizer = torch.optim.AdamW(parameters, lr=0.1)
    optimizer.load_state_dict(copy.deepcopy(state))
    assert {float(entry["step"]) for entry in optimizer.state_dict()["state"].values()} == {4.0}
    assert {tuple(sorted(entry)) for entry in state["state"].values()} == {("exp_avg", "exp_avg_sq", "step")}

    def go_on(group: Any, _: Any) -> list[Any]:
        return loaded(group, values, optimizer.state_dict()).train(7, 9).finished()

    def went_on(group: Any, _: Any) -> list[Any]:
        training = AccoTraining(group).train(0, 7)
        training.optimizer.finish()
        return training.train(7, 9).finished()

    assert equal(run_ranks(RANKS, go_on)[0], run_ranks(RANKS, went_on)[0])


def test_a_parameter_that_wakes_up_with_the_loaded_ones_leaves_them_alone():
    def train(training: AccoTraining, first: int, last: int) -> AccoTraining:
        for call in range(first, last):
            for place, parameter in enumerate(training.parameters):
                has_one = place == 0 or call >= 6
                parameter.grad = gradient(call, training.rank, parameter) if has_one else None
            training.optimizer.step()
        return training

    def work(group: Any, _: Any) -> list[list[Any]]:
        saved = train(AccoTraining(group), 0, 6)
        values, state = saved.values(), copy.deepcopy(saved.optimizer.state_dict())
        again = loaded(group, values, state)
        return [train(each, 6, 10).finished() for each in (saved, again)]

    for saved, again in run_ranks(2, work):
        assert equal(saved, again)
