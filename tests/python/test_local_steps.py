# SPDX-License-Identifier: Apache-2.0
"""DiLoCo and post-local SGD on ranks that are threads."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.once

from in_process import run_ranks  # noqa: E402
from thread_runs import equal, values_of  # noqa: E402

# What torchft's own test of its DiLoCo records (meta-pytorch/torchft 7eb7087, test_fixtures/, BSD licence): two
# fragments of one weight that begins at 1, gradients of 2, inner SGD with 1, outer SGD with 2, sync_every=6. By overlap
# and alpha: the local weights of both fragments before each of 16 steps, the global ones after each synchronization.
TORCHFT = {
    (0, 0.0): (
        [
            [1, -1, -3, -11, -13, -15, -17, -19, -21, -35, -37, -39, -41, -43, -45, -59],
            [1, -1, -3, -5, -7, -9, -23, -25, -27, -29, -31, -33, -47, -49, -51, -53],
        ],
        {0: [1, 1], 3: [-11, 1], 6: [-11, -23], 9: [-35, -23], 12: [-35, -47]},
    ),
    (0, 0.5): (
        [
            [1, -1, -3, -8, -10, -12, -14, -16, -18, -24.5, -26.5, -28.5, -30.5, -32.5, -34.5, -40.25],
            [1, -1, -3, -5, -7, -9, -17, -19, -21, -23, -25, -27, -32, -34, -36, -38],
        ],
        {0: [1, 1], 3: [-11, 1], 6: [-11, -23], 9: [-29, -23], 12: [-29, -35]},
    ),
    (0, 1.0): (
        [
            [1, -1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29],
            [1, -1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29],
        ],
        {0: [1, 1], 3: [-11, 1], 6: [-11, -23], 9: [-23, -23], 12: [-23, -23]},
    ),
    (1, 0.0): (
        [
            [1, -1, -3, -7, -9, -11, -13, -15, -17, -27, -29, -31, -33, -35, -37, -47],
            [1, -1, -3, -5, -7, -9, -19, -21, -23, -25, -27, -29, -39, -41, -43, -45],
        ],
        {0: [1, 1], 3: [-7, 1], 6: [-7, -19], 9: [-27, -19], 12: [-27, -39]},
    ),
    (1, 0.5): (
        [
            [1, -1, -3, -6, -8, -10, -12, -14, -16, -21.5, -23.5, -25.5, -27.5, -29.5, -31.5, -35.75],
            [1, -1, -3, -5, -7, -9, -15, -17, -19, -21, -23, -25, -29, -31, -33, -35],
        ],
        {0: [1, 1], 3: [-7, 1], 6: [-7, -19], 9: [-25, -19], 12: [-25, -31]},
    ),
    (1, 1.0): (
        [
            [1, -1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29],
            [1, -1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29],
        ],
        {0: [1, 1], 3: [-7, 1], 6: [-7, -19], 9: [-23, -19], 12: [-23, -23]},
    ),
}


def one_weight_each(count: int) -> Any:
    model = torch.nn.Sequential(*(torch.nn.Linear(1, 1, bias=False) for _ in range(count)))
    for parameter in model.parameters():
        parameter.data.fill_(1.0)
    return model


@pytest.mark.parametrize(("overlap_steps", "alpha"), list(TORCHFT))
def test_it_does_as_torchft(overlap_steps, alpha):
    from braid.torch import DiLoCo

    locals_, globals_ = TORCHFT[overlap_steps, alpha]

    def work(group: Any, _: Any) -> tuple[list[list[float]], dict[int, list[float]]]:
        model = one_weight_each(2)
        inner = torch.optim.SGD(model.parameters(), lr=1.0)
        diloco = DiLoCo(
            model, inner, 6, outer_lr=2.0, outer_momentum=0.0, nesterov=False, fragments=list(model),
            overlap_steps=overlap_steps, alpha=alpha, process_group=group,
        )  # fmt: skip
        seen, kept = [], {}
        for step in range(16):
            seen.append([parameter.item() for parameter in model.parameters()])
            kept[step] = [next(iter(each.original.values())).item() for each in diloco._fragments]
            for parameter in model.parameters():
                parameter.grad = torch.full_like(parameter, 2.0)
            inner.step()
        return [list(each) for each in zip(*seen)], {step: kept[step] for step in globals_}

    assert run_ranks(2, work) == [(locals_, globals_)] * 2


MODEL = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()


def step_of(model: Any, optimizer: Any, step: int, rank: int) -> None:
    generator = torch.Generator().manual_seed(100 * step + rank)
    inputs = torch.randn(8, 5, generator=generator, dtype=torch.float64)
    optimizer.zero_grad()
    (model(inputs) - inputs[:, :2].sin()).square().mean().backward()
    optimizer.step()


def make_inner(model: Any) -> Any:
    return torch.optim.AdamW(model.parameters(), lr=0.01)


def diloco_by_hand(ranks: int, steps: int, every: int) -> list[Any]:
    """With torch's SGD as the outer optimizer, all ranks in one place."""
    models = [copy.deepcopy(MODEL) for _ in range(ranks)]
    inners = [make_inner(model) for model in models]
    kept = copy.deepcopy(MODEL)
    outer = torch.optim.SGD(kept.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    for step in range(steps):
        for rank, (model, inner) in enumerate(zip(models, inners)):
            step_of(model, inner, step, rank)
        if (step + 1) % every == 0:
            for parameter, *theirs in zip(kept.parameters(), *(model.parameters() for model in models)):
                parameter.grad = sum(parameter.detach() - each.detach() for each in theirs) / ranks
            outer.step()
            for model in models:
                model.load_state_dict(kept.state_dict())
    return values_of(kept)


@pytest.mark.parametrize("fragments", [1, 2, 4])
def test_outer_steps_are_those_of_sgd(fragments):
    from braid.torch import DiLoCo

    def work(group: Any, _: Any) -> list[Any]:
        model = copy.deepcopy(MODEL)
        inner = make_inner(model)
        DiLoCo(model, inner, 4 * fragments, fragments=fragments, process_group=group)
        for step in range(12):
            step_of(model, inner, step, group.rank())
        return values_of(model)

    ranks = run_ranks(3, work)
    if fragments == 1:
        assert equal(*ranks[:2])
        assert all(torch.allclose(a, b, rtol=1e-12) for a, b in zip(ranks[0], diloco_by_hand(3, 12, 4)))
    else:
        # Some parts have been on their own for a while.
        assert not equal(*ranks[:2])


@pytest.mark.parametrize("options", [{"fragments": 2}, {"fragments": 2, "overlap_steps": 1, "alpha": 0.25}], ids=str)
@pytest.mark.parametrize("at", [6, 7, 8])
def test_a_run_that_is_loaded_goes_on_as_the_one_that_was_saved(options, at):
    from braid.torch import DiLoCo

    def work(group: Any, _: Any) -> list[list[Any]]:
        def begin() -> tuple[Any, Any, Any]:
            model = copy.deepcopy(MODEL)
            inner = make_inner(model)
            return model, inner, DiLoCo(model, inner, 6, process_group=group, **options)

        model, inner, diloco = begin()
        for step in range(at):
            step_of(model, inner, step, group.rank())
        saved = copy.deepcopy((model.state_dict(), inner.state_dict(), diloco.state_dict()))
        again, inner_again, diloco_again = begin()
        for each, state in zip((again, inner_again, diloco_again), saved):
            each.load_state_dict(state)
        results = []
        for trained, optimizer, each in ((model, inner, diloco), (again, inner_again, diloco_again)):
            for step in range(at, 20):
                step_of(trained, optimizer, step, group.rank())
            results.append(values_of(trained))
            each.finish()
            results.append(values_of(trained))
        return results

    first, second = run_ranks(2, work)
    assert equal(first[0], first[2])
    assert equal(first[1], first[3])
    assert equal(first[1], second[1]), "after finish() all ranks have the same"
    assert not equal(first[0], second[0])


@pytest.mark.parametrize("warmup_steps", [0, 5])
def test_post_local_sgd_averages_weights_after_averaging_gradients(warmup_steps):
    from braid.torch import PostLocalSGD

    def work(group: Any, _: Any) -> list[Any]:
        model = copy.deepcopy(MODEL)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        averaging = PostLocalSGD(optimizer, 3, warmup_steps, process_group=group)
        for step in range(warmup_steps + 6):
            step_of(model, optimizer, step, group.rank())
        result = values_of(model)
        averaging.remove()
        step_of(model, optimizer, 99, group.rank())
        return [result, values_of(model)]

    models = [copy.deepcopy(MODEL) for _ in range(2)]
    for step in range(warmup_steps + 6):
        for rank, model in enumerate(models):
            step_of(model, torch.optim.SGD(model.parameters(), lr=0.1), step, rank)
        # Of SGD without momentum the mean of weights after one step is the step with the mean gradient.
        if step < warmup_steps or (step - warmup_steps + 1) % 3 == 0:
            for mine, other in zip(*(model.parameters() for model in models)):
                mine.data.copy_((mine.data + other.data) / 2)
                other.data.copy_(mine.data)
    ranks = run_ranks(2, work)
    for result, _ in ranks:
        assert all(torch.allclose(a, b, rtol=1e-12) for a, b in zip(result, values_of(models[0])))
    assert equal(ranks[0][0], ranks[1][0])
    assert not equal(ranks[0][1], ranks[1][1]), "what was removed is at work"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"sync_every": 0}, "sync_every is 1 or more"),
        ({"sync_every": 5, "fragments": 2}, "a multiple of the number of fragments, not 5 with 2"),
        ({"sync_every": 4, "fragments": 2, "overlap_steps": 2}, "overlap_steps is from 0 to below 2"),
        ({"sync_every": 4, "alpha": 1.5}, "alpha is from 0"),
        ({"sync_every": 5, "fragments": 5}, "from 1 to the number of parameters, 4, not 5"),
        ({"sync_every": 5, "outer_momentum": 1.0}, "outer_momentum from 0 to below 1"),
        ({"sync_every": 1, "fragments": [MODEL[0]]}, "have 2 parameters .2 different ones., and the model 4"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(options, text):
    from braid.torch import DiLoCo

    with pytest.raises(ValueError, match=text):
        DiLoCo(MODEL, make_inner(MODEL), **options)


def test_parts_are_of_about_the_same_size():
    from braid.torch.methods.local_steps import _even_parts

    parameters = [torch.empty(n) for n in (100, 1, 50, 50, 1, 1, 97)]
    sizes = [[each.numel() for each in part] for part in _even_parts(parameters, 3)]
    assert sizes == [[100], [1, 50, 50], [1, 1, 97]]
    assert [len(part) for part in _even_parts(parameters, 7)] == [1] * 7
