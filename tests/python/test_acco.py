# SPDX-License-Identifier: Apache-2.0
"""Acco: its equations, what it waits for and refuses; on ranks that are threads."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.once

from thread_runs import (  # noqa: E402
    MODEL,
    MOMENTUM,
    RANKS,
    AccoTraining,
    assert_close,
    equal,
    error_of,
    gradient,
    values_of,
)
from in_process import Blocked, run_ranks  # noqa: E402

LOOK_S = 0.3  # Nobody comes within this time who is not to come.


def by_hand(kind: Any, calls: int, *, ranks: int = RANKS, rates: Any = None, **options: Any) -> tuple[list[Any], Any]:
    """The same with torch's optimizer, in one place, on the mean gradients: parameters after each call, and the
    weights after all. `rates`: the learning rate of each call."""
    weights = list(copy.deepcopy(MODEL).parameters())
    optimizer = kind(weights, **{"lr": 0.1, **options})

    def step(parameters: list[Any], stepped: Any, gradients: list[Any], call: int) -> None:
        for parameter, given in zip(parameters, gradients):
            parameter.grad = given
        for param_group in stepped.param_groups if rates else ():
            param_group["lr"] = rates[call]
        stepped.step()

    shown, estimate, halves, seen = values_of(weights), values_of(weights), [], []
    for call in range(calls):
        means = [sum(gradient(call, rank, p) for rank in range(ranks)) / ranks for p in shown]
        if call % 2 == 0:
            shown = values_of(weights)
            trial = [torch.nn.Parameter(values) for values in values_of(weights)]
            other = kind(trial, **{"lr": 0.1, **options})
            other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
            step(trial, other, means, call)
            halves, estimate = means, values_of(trial)
        else:
            step(weights, optimizer, [(a + b) / 2 for a, b in zip(halves, means)], call)
            shown = estimate
        seen.append(values_of(shown))
    if calls % 2:
        step(weights, optimizer, halves, calls - 1)
    return seen, values_of(weights)


# --- equations ---


@pytest.mark.parametrize("calls", [8, 9])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.SGD, {}),
        (torch.optim.SGD, {**MOMENTUM, "dampening": 0.1}),
        (torch.optim.SGD, {**MOMENTUM, "nesterov": True}),
        (torch.optim.Adam, {"weight_decay": 0.1}),
        (torch.optim.AdamW, {"weight_decay": 0.1, "betas": (0.8, 0.99)}),
    ],
    ids=str,
)
def test_it_trains_as_torchs_optimizer_does_by_hand(kind, options, calls):
    def work(group: Any, _: Any) -> tuple[list[Any], list[Any]]:
        training = AccoTraining(group, kind, **options)
        return [training.train(call, call + 1).values() for call in range(calls)], training.finished()

    seen, end = by_hand(kind, calls, **options)
    results = run_ranks(RANKS, work)
    for mine, finished in results:
        for one, expected in zip(mine, seen):
            assert_close(one, expected)
        assert_close(finished, end)
        assert equal(finished, results[0][1]) and all(map(equal, mine, results[0][0]))


def test_an_estimate_has_the_settings_of_the_first_call_and_an_update_those_of_the_second():
    rates = [0.4, 0.2, 0.3, 0.05, 0.01, 0.5, 0.25]

    def work(group: Any, _: Any) -> tuple[list[Any], list[Any]]:
        training, seen = AccoTraining(group), []
        for call, rate in enumerate(rates):
            training.optimizer.param_groups[0]["lr"] = rate
            seen.append(training.train(call, call + 1).values())
        return seen, training.finished()

    seen, end = by_hand(torch.optim.AdamW, len(rates), rates=rates)
    for mine, finished in run_ranks(RANKS, work):
        for one, expected in zip(mine, seen):
            assert_close(one, expected)
        assert_close(finished, end)


def test_a_closure_gives_the_loss():
    def work(group: Any, _: Any) -> float:
        training = AccoTraining(group)

        def closure() -> float:
            training.optimizer.zero_grad()
            loss = sum(parameter.square().sum() for parameter in training.parameters)
            loss.backward()
            return loss.item()

        losses = [training.optimizer.step(closure) for _ in range(8)]
        return losses[-1] / losses[0]

    assert all(0 < ratio < 0.9 for ratio in run_ranks(2, work))


def test_gradients_of_the_script_stay_as_they_are():
    def work(group: Any, _: Any) -> bool:
        training, kept = AccoTraining(group), True
        for call in range(5):
            given = [gradient(call, training.rank, p) for p in training.parameters]
            for parameter, values in zip(training.parameters, given):
                parameter.grad = values.clone()
            training.optimizer.step()
            kept = kept and equal([parameter.grad for parameter in training.parameters], given)
        return kept

    assert run_ranks(2, work) == [True] * 2


def test_a_missing_gradient_counts_as_zeros_and_a_parameter_rests_until_it_has_one():
    def rests(call: int, rank: int) -> bool:
        """The second parameter: its first gradient comes in the second half of a round, of one rank alone."""
        return call < 3 or (call + rank) % 3 == 0

    def work(group: Any, _: Any) -> tuple[list[bool], list[Any]]:
        training, begin, resting = AccoTraining(group, torch.optim.SGD, **MOMENTUM), list(MODEL.parameters())[1], []
        for call in range(8):
            for place, parameter in enumerate(training.parameters):
                is_missing = place == 1 and rests(call, training.rank)
                parameter.grad = None if is_missing else torch.full_like(parameter, 1.0 + call + training.rank)
            training.optimizer.step()
            resting.append(torch.equal(training.parameters[1], begin))
        return resting, training.finished()

    weight, v = list(MODEL.parameters())[1].detach().clone(), 0.0
    means = [sum(1.0 + call + rank for rank in range(2) if not rests(call, rank)) / 2 for call in range(8)]
    for call in range(3, 8, 2):
        v = 0.9 * v + (means[call - 1] + means[call]) / 2 + 0.01 * weight
        weight = weight - 0.1 * v
    results = run_ranks(2, work)
    for resting, finished in results:
        assert resting[:4] == [True] * 4 and not resting[-1]
        assert torch.allclose(finished[1], weight, rtol=1e-12)
        assert equal(finished, results[0][1])


@pytest.mark.parametrize("unscales", [False, True])
def test_with_a_scaler_of_losses_all_ranks_leave_out_a_half(unscales):
    def work(group: Any, _: Any) -> list[Any]:
        training = AccoTraining(group, torch.optim.SGD, torch.float32)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
        for call in range(7):
            factor = float("inf") if call in (2, 5) and group.rank() == 1 else 1.0
            scaler.scale(sum(p.square().sum() for p in training.parameters) * factor).backward()
            if unscales:
                scaler.unscale_(training.optimizer)
            scaler.step(training.optimizer)
            scaler.update()
            training.optimizer.zero_grad()
        return training.finished()

    def whole(group: Any, _: Any) -> list[Any]:
        training = AccoTraining(group, torch.optim.SGD, torch.float32)
        for _ in range(5):
            for parameter in training.parameters:
                parameter.grad = 2 * parameter.detach()
            training.optimizer.step()
        return training.finished()

    expected = run_ranks(2, whole)[0]
    for mine in run_ranks(2, work):
        assert all(torch.allclose(a, b, rtol=1e-6) for a, b in zip(mine, expected))


# --- what is waited for ---


def test_the_next_weights_come_while_the_network_is_blocked_and_those_after_do_not():
    def work(group: Any, world: Any) -> list[Any]:
        training, seen = AccoTraining(group).train(0, 4), []
        for call in (4, 7):
            training.optimizer.synchronize()
            group.barrier().wait()
            world.hold(True)
            before = training.values()
            training.step(call)
            came = training.values()
            thread = threading.Thread(target=training.step, args=(call + 1,), daemon=True)
            thread.start()
            thread.join(LOOK_S)
            seen += [not equal(before, came), thread.is_alive(), equal(came, training.values())]
            group.barrier().wait()
            world.hold(False)
            thread.join()
            training.step(call + 2)
        return seen

    assert run_ranks(2, work) == [[True] * 6] * 2


@pytest.mark.parametrize("first", [3, 4])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_gradients_go_out_before_the_last_round_is_through(kind, first):
    def work(group: Any, world: Any) -> bool:
        free, training = AccoTraining(group, kind).train(0, first + 5), AccoTraining(group, kind).train(0, first)
        for call in (first, first + 2):
            training.optimizer.synchronize()
            blocked = Blocked(group, training, world, call)
            blocked.wait_for_rounds(2)
            blocked.end()
        training.step(first + 4)
        return equal(free.finished(), training.finished())

    assert run_ranks(2, work) == [True, True]


@pytest.mark.parametrize("calls", [3, 4])
def test_a_failure_on_the_way_is_told_by_the_next_step_and_by_finish(calls):
    def work(group: Any, world: Any) -> list[str]:
        training = AccoTraining(group).train(0, calls)
        training.optimizer.synchronize()
        group.barrier().wait()
        world.hold(True)
        training.step(calls)
        group.barrier().wait()
        world.fail("JOB_FAILED: lost rank 7")
        calls_made = (lambda: training.step(8), lambda: training.step(9), training.optimizer.finish)
        return [error_of(call, torch.distributed.DistBackendError) for call in calls_made]

    assert run_ranks(2, work) == [["JOB_FAILED: lost rank 7"] * 3] * 2


def test_ranks_that_disagree_are_told():
    def work(group: Any, _: Any) -> str:
        training = AccoTraining(group, lr=0.1 * (1 + group.rank()))
        training.step(0)
        return error_of(lambda: training.step(1), torch.distributed.DistBackendError)

    assert all("ranks disagree about the update" in text for text in run_ranks(2, work))


# --- finish() ---


@pytest.mark.parametrize("every", [1, 2, 3, 4])
def test_training_goes_on_after_finish(every):
    def work(group: Any, _: Any) -> list[list[Any]]:
        training, ends = AccoTraining(group), []
        for first in range(0, 12, every):
            ends.append(training.train(first, first + every).finished())
            ends.append(training.finished())
        return ends

    first, second = run_ranks(2, work)
    assert all(map(equal, first, second))
    assert all(map(equal, first[::2], first[1::2])), "a second finish() changes nothing"
    assert not any(map(equal, first[:-2:2], first[2::2]))


def test_before_the_first_step_there_is_nothing_to_finish():
    assert run_ranks(2, lambda group, _: equal(AccoTraining(group).finished(), list(MODEL.parameters()))) == [True] * 2


# --- what is refused ---


@pytest.mark.parametrize("calls", [3, 4])
def test_parameters_that_somebody_changes_in_a_round_are_refused_and_after_finish_taken_over(calls):
    def work(group: Any, _: Any) -> tuple[list[str], float, float]:
        training = AccoTraining(group, torch.optim.SGD, lr=0.0).train(0, calls)

        def change() -> None:
            with torch.no_grad():
                training.parameters[1].fill_(2.0 + training.rank)

        change()
        texts = [error_of(lambda: training.step(8)), error_of(training.optimizer.state_dict)]
        texts.append(error_of(training.optimizer.reload))
        finished = training.finished()[1].max().item()
        change()
        training.step(9)
        return texts, finished, training.parameters[1].max().item()

    for texts, finished, taken in run_ranks(2, work):
        for text in texts[:2]:
            assert "Acco of SGD: somebody has changed #1 in the middle of a round; call finish()" in text
        assert "Acco of SGD: call finish() before parameters are changed" in texts[2]
        assert finished == list(MODEL.parameters())[1].max().item()
        assert taken == 2.0


def test_arguments_that_make_no_sense_are_refused():
    from braid.torch import Acco

    def refused(kind: Any = torch.optim.AdamW, **options: Any) -> str:
        return error_of(lambda: Acco([torch.nn.Parameter(torch.ones(2))], kind, **options), (ValueError, TypeError))

    assert "hides communication behind whole half batches: no overlap_forward" in refused(overlap_forward=True)
    assert "pull is one of full, bf16, not 'int8'" in refused(pull="int8")
    assert "Acco of AdamW does not have amsgrad=True" in refused(amsgrad=True)
    assert "not as <class 'torch.optim.rmsprop.RMSprop'>" in refused(torch.optim.RMSprop)


def test_a_momentum_that_comes_too_late_is_refused():
    def work(group: Any, _: Any) -> str:
        training = AccoTraining(group, torch.optim.SGD).train(0, 3)
        training.optimizer.param_groups[0]["momentum"] = 0.9
        return error_of(lambda: training.step(3))

    assert all("it began without momentum, so its owners keep none" in text for text in run_ranks(2, work))
