# SPDX-License-Identifier: Apache-2.0
"""ShardedOptimizer with overlap_backward: what goes when, and what it refuses; on ranks that are threads."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.once

from in_process import run_ranks  # noqa: E402
from thread_runs import values_of  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

MODEL = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)).double()
INPUTS = torch.linspace(-1, 1, 12, dtype=torch.float64).view(3, 4)
RANKS = 3


def begin(group: Any, model: Any = MODEL, kind: Any = torch.optim.AdamW, **options: Any) -> tuple[Any, Any]:
    from braid.torch import ShardedOptimizer

    model = copy.deepcopy(model)
    options = {"lr": 0.1, "overlap_backward": True, **options}
    return model, ShardedOptimizer(model.parameters(), kind, model=model, process_group=group, **options)


def backward(model: Any, step: int, rank: int) -> None:
    inputs = (INPUTS + 0.1 * step - rank).to(model[0].weight.dtype)
    model(inputs).square().sum().backward()


def train(model: Any, optimizer: Any, rank: int, steps: range) -> None:
    for step in steps:
        optimizer.zero_grad()
        backward(model, step, rank)
        optimizer.step()


def assert_same_as_without(course: Callable[[Any, Any, int], None], begun: Any = MODEL, **options: Any) -> None:
    """`course(model, optimizer, rank)` on all ranks with the option, and without it."""

    def work(group: Any, _: Any) -> list[list[Any]]:
        values = []
        for overlaps in (True, False):
            model, optimizer = begin(group, begun, overlap_backward=overlaps, **options)
            course(model, optimizer, group.rank())
            optimizer.synchronize()
            values.append(values_of(model))
        return values

    for on, off in run_ranks(RANKS, work):
        assert all(torch.equal(a, b) for a, b in zip(on, off))
        assert not any(torch.equal(a, b) for a, b in zip(on, begun.parameters()))


def test_gradients_go_while_the_backward_pass_goes_on():
    def work(group: Any, world: Any) -> list[int]:
        model, optimizer = begin(group)
        train(model, optimizer, group.rank(), range(1))

        def count() -> int:
            with world.changed:
                return sum(group.rank() in operation.inputs for operation in world.operations.values())

        counts = [count()]
        hidden = model[0](INPUTS)
        hidden.register_hook(lambda _: counts.append(count()))
        model[2](model[1](hidden)).sum().backward()
        counts.append(count())
        optimizer.step()
        counts.append(count())
        return [number - counts[0] for number in counts]

    assert run_ranks(RANKS, work) == [[0, 2, 4, 4]] * RANKS


@pytest.mark.parametrize("overlap_forward", [False, True])
def test_it_trains_as_without(overlap_forward):
    assert_same_as_without(
        lambda model, optimizer, rank: train(model, optimizer, rank, range(6)), overlap_forward=overlap_forward
    )


@pytest.mark.parametrize("overlap_forward", [False, True])
def test_a_parameter_may_be_used_in_some_passes_only_and_on_some_ranks(overlap_forward):
    def course(model: Any, optimizer: Any, rank: int) -> None:
        for step in range(8):
            optimizer.zero_grad()
            values = INPUTS + step - rank
            if step != 3 and not (step == 5 and rank == 1):
                values = model[0](values)
            values[:, :4].sum().backward() if step == 2 else model[2](values[:, :1].expand(3, 5)).sum().backward()
            optimizer.step()

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(5, 2)).double()
    assert_same_as_without(course, model, overlap_forward=overlap_forward)


def test_a_parameter_that_gets_its_first_gradient_late_is_updated_with_it():
    def course(model: Any, optimizer: Any, rank: int) -> None:
        for step in range(6):
            optimizer.zero_grad()
            # The first layer from the fourth step on, and then on one rank only at first.
            is_whole = step > 3 or (step == 3 and rank == 1)
            (model(INPUTS - rank) if is_whole else model[2](INPUTS[:, :1].expand(3, 5) + rank)).sum().backward()
            optimizer.step()

    assert_same_as_without(course)


@pytest.mark.parametrize("who", [range(RANKS), [1]])
def test_a_step_needs_no_backward_pass(who):
    def course(model: Any, optimizer: Any, rank: int) -> None:
        for step in range(6):
            optimizer.zero_grad()
            if step not in (2, 3) or rank not in who:
                backward(model, step, rank)
            optimizer.step()

    assert_same_as_without(course)


def test_parameters_of_several_types_and_a_frozen_one():
    def course(model: Any, optimizer: Any, rank: int) -> None:
        for step in range(6):
            model[0].bias.requires_grad_(step > 3)
            optimizer.zero_grad()
            model[2](model[0](INPUTS.float() * (1 + rank)).double()).sum().backward()
            optimizer.step()

    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2).double())
    assert_same_as_without(course, model)


def test_a_closure_may_do_the_backward_pass():
    def course(model: Any, optimizer: Any, rank: int) -> None:
        def closure() -> None:
            optimizer.zero_grad()
            backward(model, 0, rank)

        for _ in range(4):
            optimizer.step(closure)

    assert_same_as_without(course)


def test_gradients_may_be_added_to_those_of_the_last_step():
    def course(model: Any, optimizer: Any, rank: int) -> None:
        for step in range(4):
            backward(model, step, rank)
            optimizer.step()

    assert_same_as_without(course)


def test_two_passes_may_have_different_parameters():
    def course(model: Any, optimizer: Any, rank: int) -> None:
        for step in range(4):
            optimizer.zero_grad()
            model[0](INPUTS + step).sum().backward()
            model[2](INPUTS[:, :1].expand(3, 5) - rank).sum().backward()
            optimizer.step()

    assert_same_as_without(course)


def test_a_pass_within_a_pass():
    def course(model: Any, optimizer: Any, rank: int) -> None:
        for step in range(4):
            optimizer.zero_grad()
            inputs = (INPUTS + step - rank).requires_grad_()
            model[2](checkpoint(model[:2], inputs, use_reentrant=True)).square().sum().backward()
            optimizer.step()

    assert_same_as_without(course)


def test_what_was_changed_or_loaded_goes_to_the_owners_with_the_next_step():
    def course(model: Any, optimizer: Any, rank: int) -> None:
        train(model, optimizer, rank, range(2))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(0.5)
        train(model, optimizer, rank, range(2, 4))
        state = copy.deepcopy(optimizer.state_dict())
        train(model, optimizer, rank, range(4, 6))
        optimizer.load_state_dict(state)
        train(model, optimizer, rank, range(6, 8))
        for parameter in model.parameters():
            parameter.data.mul_(2)
        optimizer.reload()
        train(model, optimizer, rank, range(8, 10))

    assert_same_as_without(course)


def test_settings_are_those_at_the_beginning_of_the_backward_pass():
    def work(group: Any, _: Any) -> list[bool]:
        model, optimizer = begin(group, kind=torch.optim.SGD)
        moved = []
        for step in range(3):
            before = values_of(model)
            optimizer.zero_grad()
            backward(model, step, group.rank())
            optimizer.param_groups[0]["lr"] = 0.0
            optimizer.step()
            moved.append(not torch.equal(before[0], model[0].weight))
            optimizer.param_groups[0]["lr"] = 0.1 if step == 0 else 0.0
        return moved

    # The first step is submitted by step().
    assert run_ranks(2, work) == [[False, True, False]] * 2


def test_the_model_may_be_copied_and_the_optimizer_may_be_replaced():
    def work(group: Any, _: Any) -> tuple[bool, list[Any]]:
        from braid.torch import ShardedOptimizer

        model, optimizer = begin(group)
        train(model, optimizer, group.rank(), range(2))
        copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        for copied in copies:
            copied.zero_grad()
            backward(copied, 2, group.rank())
        train(model, optimizer, group.rank(), range(2, 4))
        # The old one is still there, and leaves gradients alone.
        new = ShardedOptimizer(model.parameters(), torch.optim.AdamW, lr=0.1, process_group=group)
        new.load_state_dict(optimizer.state_dict())
        train(model, new, group.rank(), range(4, 6))
        del optimizer
        train(model, new, group.rank(), range(6, 8))
        return all(copied[0].weight.grad is not None for copied in copies), values_of(model)

    def other(group: Any, _: Any) -> list[Any]:
        model, optimizer = begin(group, overlap_backward=False)
        train(model, optimizer, group.rank(), range(8))
        return values_of(model)

    for (has_gradient, mine), expected in zip(run_ranks(2, work), run_ranks(2, other)):
        assert has_gradient and all(torch.equal(a, b) for a, b in zip(mine, expected))


def refusals(break_off: Callable[[Any, Any], None], begun: Any = MODEL) -> str:
    """What all ranks are told in their third step, and whenever they try to go on."""

    def work(group: Any, _: Any) -> str:
        model, optimizer = begin(group, begun)
        train(model, optimizer, group.rank(), range(2))
        optimizer.zero_grad()
        texts = []
        with pytest.raises(RuntimeError) as error:
            break_off(model, optimizer)
            optimizer.step()
        texts.append(str(error.value))
        optimizer.zero_grad()
        for attempt in (lambda: backward(model, 3, 0), optimizer.step, optimizer.state_dict):
            with pytest.raises(RuntimeError) as error:
                attempt()
            texts.append(str(error.value))
        assert set(texts) == {texts[0]}
        return texts[0]

    first, second = run_ranks(2, work)
    assert first == second and first.startswith("ShardedOptimizer of AdamW: ")
    return first


def after_backward(change: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def break_off(model: Any, optimizer: Any) -> None:
        backward(model, 2, 0)
        change(model, optimizer)

    return break_off


def test_a_second_gradient_is_refused():
    told = refusals(after_backward(lambda model, _: backward(model, 3, 0)))
    assert "'2.bias' has a second gradient before step()" in told or "'2.weight' has a second" in told
    assert "accumulate gradients over several backward passes, leave overlap_backward off" in told


def test_gradients_that_are_changed_after_the_backward_pass_are_refused():
    def clip(model: Any, _: Any) -> None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)

    def replace(model: Any, _: Any) -> None:
        model[2].weight.grad = model[2].weight.grad.clone()

    assert "' was changed between the backward pass" in refusals(after_backward(clip))
    assert "of '2.weight' was replaced between the backward pass" in refusals(after_backward(replace))
    zeroed = refusals(after_backward(lambda _, optimizer: optimizer.zero_grad(set_to_none=False)))
    assert "' was changed between the backward pass" in zeroed
    assert "' was taken away between" in refusals(after_backward(lambda _, optimizer: optimizer.zero_grad()))


def test_a_parameter_that_is_changed_after_the_backward_pass_is_refused():
    def change(model: Any, _: Any) -> None:
        with torch.no_grad():
            model[0].weight.mul_(0.5)

    assert "'0.weight' was changed between the backward pass" in refusals(after_backward(change))


def fail_in_the_middle(model: Any, _: Any) -> None:
    def fail(_: Any) -> None:
        raise KeyError("of the script")

    hidden = model[0](INPUTS)
    hidden.register_hook(fail)
    with pytest.raises(KeyError, match="of the script"):
        model[2](hidden).sum().backward()


def test_a_backward_pass_that_breaks_off_ends_the_training():
    def and_again(model: Any, optimizer: Any) -> None:
        fail_in_the_middle(model, optimizer)
        optimizer.zero_grad()
        backward(model, 3, 0)

    assert "a backward pass has not ended, for an error perhaps" in refusals(fail_in_the_middle)
    assert "a backward pass has not ended, for an error perhaps" in refusals(and_again)


def test_a_scaler_of_losses_is_refused():
    def scaled(model: Any, optimizer: Any) -> None:
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        scaler.scale(model(INPUTS.float()).sum()).backward()
        scaler.step(optimizer)

    told = refusals(scaled, copy.deepcopy(MODEL).float())
    assert "overlap_backward does not go with a GradScaler" in told


def test_what_comes_between_the_backward_pass_and_step_is_refused_and_step_goes_on():
    def work(group: Any, _: Any) -> list[Any]:
        model, optimizer = begin(group)
        train(model, optimizer, group.rank(), range(2))
        backward(model, 2, group.rank())
        for name, attempt in (
            ("state_dict()", optimizer.state_dict),
            ("load_state_dict()", lambda: optimizer.load_state_dict({"state": {}, "param_groups": []})),
            ("reload()", optimizer.reload),
        ):
            with pytest.raises(RuntimeError) as error:
                attempt()
            assert f": {name} comes between a backward pass" in str(error.value)
        optimizer.synchronize()
        model.state_dict()
        optimizer.step()
        return values_of(model)

    first, second = run_ranks(2, work)
    assert all(torch.equal(a, b) for a, b in zip(first, second))


def test_sparse_gradients_are_refused_where_they_come():
    def work(group: Any, _: Any) -> str:
        model, optimizer = begin(group, torch.nn.Sequential(torch.nn.Embedding(5, 2)).double(), torch.optim.SGD)
        model(torch.tensor([1])).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        model[0].sparse = True
        with pytest.raises(RuntimeError) as error:
            model(torch.tensor([1])).sum().backward()
        return str(error.value)

    assert all("does not take sparse gradients" in text for text in run_ranks(2, work))


def test_ranks_that_disagree_are_told():
    def work(group: Any, _: Any) -> str:
        model, optimizer = begin(group)
        train(model, optimizer, group.rank(), range(1))
        optimizer.param_groups[0]["lr"] = 0.1 * (1 + group.rank())
        with pytest.raises(torch.distributed.DistBackendError) as error:
            train(model, optimizer, group.rank(), range(1, 3))
        return str(error.value)

    assert all("ranks disagree about the update" in text for text in run_ranks(2, work))
