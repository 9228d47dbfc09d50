# SPDX-License-Identifier: Apache-2.0
"""DelayedOptimizer: what it refuses, what it waits for, and its state; on ranks that are threads."""

from __future__ import annotations

import copy
import logging
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.once

import thread_runs  # noqa: E402
from in_process import Blocked, run_ranks  # noqa: E402
from thread_runs import MODEL, equal, gradient  # noqa: E402

LOOK_S = 0.3  # Nobody comes within this time who is not to come.


class Training(thread_runs.Training):
    def __init__(self, group: Any, **options: Any) -> None:
        from braid.torch import DelayedOptimizer

        options = {"momentum": 0.9, "warmup_steps": 0, "worker": "rank", **options}
        super().__init__(group, DelayedOptimizer, **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"method": "sgd"}, "method is one of od-sgd, ssd-sgd, cd-sgd, not 'sgd'"),
        ({"local": "glu"}, "local of od-sgd is one of sgd, dc, adc, not 'glu'"),
        ({"method": "ssd-sgd", "local": "dc"}, "local of ssd-sgd is one of sgd, glu, not 'dc'"),
        ({"pull": "int8"}, "pull is one of full, bf16"),
        ({"worker": "gpu"}, "worker is one of node, rank"),
        ({"pull_every": 2}, "pull_every belongs to ssd-sgd, and this is od-sgd"),
        ({"method": "ssd-sgd", "pull_every": -1}, "pull_every is 1 or more, not -1"),
        ({"method": "cd-sgd"}, "cd-sgd needs a threshold above 0"),
        ({"method": "cd-sgd", "threshold": 0.1, "correction_every": -2}, "correction_every is 1 or more"),
        ({"warmup_steps": -1}, "warmup_steps is 0 or more"),
        ({"method": "ssd-sgd", "pull_every": 3, "local": "sgd", "momentum": 0.9}, "diverges: pull every 2 steps"),
        ({"method": "ssd-sgd", "pull_every": 20, "momentum": 0.9}, "diverges: pull every 10 steps or more often"),
        ({"lr": -1.0}, "Invalid learning rate"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(options, text):
    from braid.torch import DelayedOptimizer

    with pytest.raises(ValueError, match=text):
        DelayedOptimizer(MODEL.parameters(), **{"lr": 0.1, **options})


def test_what_trains_worse_is_tried_by_force(caplog):
    options = {"method": "ssd-sgd", "pull_every": 3, "local": "sgd", "force": True}
    with caplog.at_level(logging.WARNING, "braid"):
        run_ranks(2, lambda group, _: Training(group, **options).train(0, 3) and None)
    assert "diverges: pull every 2 steps or more often" in caplog.text


def test_without_momentum_it_does_not_diverge():
    run_ranks(2, lambda group, _: Training(group, method="ssd-sgd", pull_every=20, momentum=0).train(0, 3) and None)


def test_it_needs_a_group_of_braid():
    from braid.torch import DelayedOptimizer

    with pytest.raises(RuntimeError, match='call torch.distributed.init_process_group\\("braid"\\) first'):
        DelayedOptimizer(MODEL.parameters(), lr=0.1)
    with pytest.raises(TypeError, match="needs a process group of the backend braid, this one is str"):
        DelayedOptimizer(MODEL.parameters(), lr=0.1, process_group="gloo")


def test_text_of_the_environment_is_read():
    from braid.torch.methods.delay import parse_delay

    delay = parse_delay("ssd-sgd:pull_every=3,local=glu, warmup_steps=100,beta=0.25,pull=bf16")
    assert (delay.method, delay.pull_every, delay.local, delay.warmup_steps) == ("ssd-sgd", 3, "glu", 100)
    assert (delay.beta, delay.alpha, delay.pull) == (0.25, 2.0, "bf16")
    assert [parse_delay(f"ssd-sgd:local={local}").pull_every for local in ("sgd", "glu")] == [2, 4]
    assert parse_delay("cd-sgd:threshold=0.01,correction_every=7").codec == "2bit:threshold=0.01,full-every=7"
    for text, message in (
        ("ssd-sgd:pull_every=x", "pull_every is a whole number, not 'x'"),
        ("od-sgd:warmup", "'warmup': an option is NAME=VALUE with one of local, local_lr, warmup_steps"),
        ("od-sgd:speed=3", "an option is NAME=VALUE"),
    ):
        with pytest.raises(ValueError, match=message):
            parse_delay(text)


def test_the_next_weights_come_while_the_network_is_blocked_and_those_after_do_not():
    def work(group: Any, world: Any) -> list[Any]:
        training = Training(group).train(0, 4)
        training.optimizer.global_state.wait()
        group.barrier().wait()
        world.hold(True)
        before = training.values()
        training.step(4)
        came, state = training.values(), training.optimizer.global_state
        seen = [not equal(before, came), state.done()]
        thread = threading.Thread(target=training.step, args=(5,), daemon=True)
        thread.start()
        thread.join(LOOK_S)
        seen += [thread.is_alive(), equal(came, training.values())]
        group.barrier().wait()
        world.hold(False)
        thread.join()
        state.wait()
        return [*seen, state.done(), equal(came, training.values())]

    assert run_ranks(2, work) == [[True, False, True, True, True, False]] * 2


@pytest.mark.parametrize("options", [{}, {"method": "ssd-sgd", "pull_every": 3}, {"pull": "bf16"}], ids=str)
def test_gradients_go_out_before_the_last_ones_are_through(options):
    def work(group: Any, world: Any) -> bool:
        free, training = Training(group, **options).train(0, 9), Training(group, **options).train(0, 3)
        for number in (3, 5):
            training.optimizer.global_state.wait()
            blocked = Blocked(group, training, world, number)
            blocked.wait_for_rounds(2)
            blocked.end()
        training.train(7, 9)
        return equal(free.values(), training.values())

    assert run_ranks(2, work) == [True, True]


def test_without_memory_for_more_gradients_they_wait_for_the_last_ones():
    def work(group: Any, world: Any) -> bool:
        free, training = Training(group).train(0, 6), Training(group)
        for number in range(3):  # None begins before the one before is through, so none takes more memory.
            training.step(number)
            training.optimizer.global_state.wait()
        job = group.engine.job
        job.arena_is_full = True
        blocked = Blocked(group, training, world, 3)
        assert blocked.rounds() == 1
        blocked.end()
        job.arena_is_full = False
        training.train(5, 6)
        return equal(free.values(), training.values())

    assert run_ranks(2, work) == [True, True]


def test_the_end_of_the_warm_up_leaves_no_memory_behind():
    def work(group: Any, _: Any) -> int:
        training = Training(group, method="cd-sgd", threshold=0.1, warmup_steps=2)
        training.train(0, 2)
        in_warm_up = group.engine.job.blocks()
        training.train(2, 3).optimizer.finish()
        return group.engine.job.blocks() - in_warm_up

    assert run_ranks(2, work) == [0, 0]


def test_a_schedule_of_learning_rates_is_followed():
    def work(group: Any, _: Any) -> list[float]:
        x = torch.nn.Parameter(torch.tensor([4.0], dtype=torch.float64))
        from braid.torch import DelayedOptimizer

        optimizer = DelayedOptimizer([x], lr=0.4, warmup_steps=0, worker="rank", process_group=group)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
        for _ in range(6):
            x.grad = x.detach() - 1
            optimizer.step()
            schedule.step()
        optimizer.finish()
        return [x.item()]

    x = 4.0
    for step in range(6):
        x -= 0.4 * 0.5 ** (step // 2) * (x - 1)
    assert run_ranks(2, work) == [pytest.approx([x], rel=1e-14)] * 2


METHODS = [
    {"method": "od-sgd"},
    {"method": "od-sgd", "local": "dc"},
    {"method": "ssd-sgd", "pull_every": 4},
    {"method": "od-sgd", "warmup_steps": 9},
]


@pytest.mark.parametrize("options", METHODS, ids=str)
@pytest.mark.parametrize("at", [7, 8])
def test_a_run_that_is_loaded_goes_on_as_the_one_that_was_saved(options, at):
    def work(group: Any, _: Any) -> bool:
        whole, saved = Training(group, **options).train(0, 15), Training(group, **options).train(0, at)
        parameters, state = saved.values(), copy.deepcopy(saved.optimizer.state_dict())
        again = Training(group, **options)
        for parameter, values in zip(again.parameters, parameters):
            with torch.no_grad():
                parameter.copy_(values)
        again.optimizer.load_state_dict(state)
        used = Training(group, **options).train(3, 5)
        used.optimizer.load_state_dict(copy.deepcopy(state))
        for training in (saved, again, used):
            training.train(at, 15)
        whole_values = whole.values()
        return all(equal(whole_values, each.values()) for each in (saved, again, used))

    assert run_ranks(2, work) == [True] * 2


def test_the_state_is_that_of_sgd():
    def work(group: Any, _: Any) -> tuple[list[Any], list[Any]]:
        ours = Training(group, warmup_steps=100).train(0, 5)
        theirs = copy.deepcopy(MODEL)
        for parameter, values in zip(theirs.parameters(), ours.values()):
            parameter.data.copy_(values)
        optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9)
        optimizer.load_state_dict(ours.optimizer.state_dict())
        ours.train(5, 9)
        for step in range(5, 9):
            for parameter in theirs.parameters():
                parameter.grad = sum(gradient(step, rank, parameter) for rank in range(2)) / 2
            optimizer.step()
        return ours.values(), [parameter.detach() for parameter in theirs.parameters()]

    for ours, theirs in run_ranks(2, work):
        assert all(torch.allclose(a, b, rtol=1e-12) for a, b in zip(ours, theirs))


def test_the_state_of_sgd_is_loaded_by_one_that_has_not_stepped_yet():
    theirs = copy.deepcopy(MODEL)
    sgd = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9)

    def train(first: int, last: int) -> list[Any]:
        for step in range(first, last):
            for parameter in theirs.parameters():
                parameter.grad = sum(gradient(step, rank, parameter) for rank in range(2)) / 2
            sgd.step()
        return [parameter.detach().clone() for parameter in theirs.parameters()]

    values, state = train(0, 5), copy.deepcopy(sgd.state_dict())

    def work(group: Any, _: Any) -> list[Any]:
        ours = Training(group, warmup_steps=100)
        for parameter, saved in zip(ours.parameters, values):
            parameter.data.copy_(saved)
        ours.optimizer.load_state_dict(copy.deepcopy(state))
        return ours.train(5, 9).values()

    expected = train(5, 9)
    for ours in run_ranks(2, work):
        assert all(torch.allclose(a, b, rtol=1e-12) for a, b in zip(ours, expected))


@pytest.mark.parametrize("options", [{"method": "od-sgd"}, {"method": "ssd-sgd", "pull_every": 3}], ids=str)
def test_training_goes_on_after_finish(options):
    def work(group: Any, _: Any) -> list[list[Any]]:
        training = Training(group, **options)
        ends = []
        for first in range(0, 20, 5):
            training.train(first, first + 5)
            training.optimizer.finish()
            ends.append(training.values())
        return ends

    first, second = run_ranks(2, work)
    assert all(equal(a, b) for a, b in zip(first, second))
    assert not equal(first[2], first[3])


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("options", [{"method": "od-sgd"}, {"method": "ssd-sgd", "pull_every": 3}], ids=str)
def test_one_rank_may_look_at_the_global_state_by_itself(options, steps):
    def work(group: Any, _: Any) -> tuple[list[Any], list[Any]]:
        training = Training(group, **options).train(0, steps)
        looked = []
        if group.rank() == 0:
            with torch.no_grad():
                training.optimizer._steps.settle()
            looked = training.values()
        training.train(steps, 8)
        training.optimizer.finish()
        return looked, training.values()

    def pulled(group: Any, _: Any) -> list[Any]:
        every = options.get("pull_every", 1)
        training = Training(group, **options).train(0, steps - steps % every)
        training.optimizer.finish()
        return training.values()

    (looked, end), (_, other_end) = run_ranks(2, work)
    assert equal(end, other_end)
    # Before the first pull there are the weights of the beginning.
    assert equal(looked, run_ranks(2, pulled)[0])


def test_parameters_that_somebody_changes_are_taken_over():
    def work(group: Any, _: Any) -> list[Any]:
        training = Training(group).train(0, 5)
        with torch.no_grad():
            for parameter in training.parameters:
                parameter.fill_(2.0 + group.rank())
        training.step(5)
        training.optimizer.finish()
        return [(parameter - 2.0).abs().max().item() for parameter in training.parameters]

    for distances in run_ranks(2, work):
        assert max(distances) < 1.5, "the first rank's 2.0 is where the step began"


def test_a_failure_on_the_way_is_told_by_the_next_step_and_by_finish():
    def work(group: Any, world: Any) -> list[str]:
        training = Training(group).train(0, 3)
        group.barrier().wait()
        world.hold(True)
        training.step(3)
        group.barrier().wait()
        world.fail("JOB_FAILED: lost rank 7")
        texts = []
        for call in (lambda: training.step(4), lambda: training.step(5), training.optimizer.finish):
            with pytest.raises(torch.distributed.DistBackendError) as error:
                call()
            texts.append(str(error.value))
        return texts

    assert run_ranks(2, work) == [["JOB_FAILED: lost rank 7"] * 3] * 2


@pytest.mark.parametrize("how", [", but another node has submitted another one", " without submitting 'w' step 8"])
def test_a_rank_that_left_in_order_is_said_to_have_taken_fewer_steps(how):
    def work(group: Any, world: Any) -> str:
        training = Training(group).train(0, 3)
        group.barrier().wait()
        world.hold(True)
        training.step(3)
        group.barrier().wait()
        world.fail(f"rank 1 left the job{how}")
        with pytest.raises(torch.distributed.DistBackendError) as error:
            training.step(4)
        return str(error.value)

    for text in run_ranks(2, work):
        assert text.startswith(f"rank 1 left the job{how}; all ranks must take the same number")
        assert "the rank that left has taken fewer" in text
