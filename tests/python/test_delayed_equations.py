# SPDX-License-Identifier: Apache-2.0
"""DelayedOptimizer against the equations of its methods, on ranks that are threads; no daemons."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import quadratics

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.once

from in_process import run_ranks  # noqa: E402

STEPS = 24
LR = quadratics.LR


torch.manual_seed(3)
MODEL = torch.nn.Sequential(torch.nn.Linear(6, 9), torch.nn.Tanh(), torch.nn.Linear(9, 3)).double()

DATA = torch.randn(STEPS, 3, 8, 9, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


def loss_of(model: Any, step: int, rank: int) -> Any:
    inputs, targets = DATA[step, rank].split([6, 3], 1)
    return ((model(inputs) - targets) ** 2).mean()


def synchronous(ranks: int, *, identical: bool = False, **kwargs: Any) -> list[Any]:
    model = copy.deepcopy(MODEL)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, **kwargs)
    for step in range(STEPS):
        optimizer.zero_grad()
        sum(loss_of(model, step, 0 if identical else rank) / ranks for rank in range(ranks)).backward()
        optimizer.step()
    return list(model.parameters())


def delayed(ranks: int, *, identical: bool = False, steps: int = STEPS, **kwargs: Any) -> list[list[Any]]:
    """The parameters of each rank after finish()."""
    from braid.torch import DelayedOptimizer

    def work(group: Any, _: Any) -> list[Any]:
        model = copy.deepcopy(MODEL)
        options = {"lr": LR, "warmup_steps": 0, "worker": "rank", **kwargs}
        optimizer = DelayedOptimizer(model.parameters(), process_group=group, **options)
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(model, step, 0 if identical else group.rank()).backward()
            optimizer.step()
        optimizer.finish()
        return [parameter.detach().clone() for parameter in model.parameters()]

    return run_ranks(ranks, work)


def assert_close(ranks: list[list[Any]], expected: list[Any]) -> None:
    for parameters in ranks:
        for mine, other, of_first in zip(parameters, expected, ranks[0]):
            assert torch.allclose(mine, other, rtol=1e-12, atol=1e-14)
            assert torch.equal(mine, of_first)


def assert_apart(ranks: list[list[Any]], expected: list[Any]) -> None:
    assert not torch.allclose(ranks[0][0], expected[0], rtol=1e-3)


METHODS = [
    {"method": "od-sgd"},
    {"method": "ssd-sgd", "pull_every": 1, "local": "sgd"},
    {"method": "ssd-sgd", "pull_every": 4, "local": "sgd"},
    {"method": "ssd-sgd", "pull_every": 5, "local": "sgd", "weight_decay": 0.01},
]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_one_worker_trains_as_sgd(method):
    assert_close(delayed(1, **method), synchronous(1, weight_decay=method.get("weight_decay", 0)))


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_workers_with_identical_batches_train_as_sgd(method):
    decay = method.get("weight_decay", 0)
    assert_close(delayed(3, identical=True, **method), synchronous(3, identical=True, weight_decay=decay))


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_workers_with_batches_of_their_own_do_not(method):
    assert_apart(delayed(3, **method), synchronous(3, weight_decay=method.get("weight_decay", 0)))


MOMENTUM = {"momentum": 0.9, "weight_decay": 0.01}


@pytest.mark.parametrize("more", [{}, MOMENTUM, {**MOMENTUM, "nesterov": True}], ids=str)
def test_endless_warmup_is_synchronous_sgd(more):
    assert_close(delayed(3, method="od-sgd", warmup_steps=1000, **more), synchronous(3, **more))


def test_ssd_that_pulls_each_step_is_od():
    expected = delayed(3, method="od-sgd", **MOMENTUM)[0]
    assert_close(delayed(3, method="ssd-sgd", pull_every=1, local="sgd", **MOMENTUM), expected)


def test_cd_that_corrects_each_step_is_od():
    expected = delayed(3, method="od-sgd", **MOMENTUM)[0]
    assert_close(delayed(3, method="cd-sgd", correction_every=1, threshold=0.1, **MOMENTUM), expected)


def test_glu_without_its_two_terms_is_sgd():
    options = {"method": "ssd-sgd", "pull_every": 3, "force": True, **MOMENTUM}
    expected = delayed(3, local="sgd", **options)[0]
    assert_close(delayed(3, local="glu", alpha=1.0, beta=0.0, **options), expected)
    assert_apart(delayed(3, local="glu", **options), expected)


CENTRES = (1.0, -3.0)


def on_quadratics(steps: int, **kwargs: Any) -> list[tuple[list[float], float]]:
    """For each rank x after each step, and W after all."""
    from braid.torch import DelayedOptimizer

    def work(group: Any, _: Any) -> tuple[list[float], float]:
        x = torch.nn.Parameter(torch.tensor([quadratics.START], dtype=torch.float64))
        optimizer = DelayedOptimizer([x], lr=LR, warmup_steps=0, worker="rank", process_group=group, **kwargs)
        seen = []
        for _ in range(steps):
            x.grad = (x.detach() - CENTRES[group.rank()]).clone()
            optimizer.step()
            seen.append(x.item())
        optimizer.finish()
        return seen, x.item()

    return run_ranks(2, work)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("decay", [0.0, 0.02])
@pytest.mark.parametrize(
    "method",
    [
        {"method": "od-sgd"},
        {"method": "od-sgd", "local": "dc"},
        {"method": "od-sgd", "local": "adc"},
        {"method": "ssd-sgd", "local": "sgd", "pull_every": 4, "force": True},
        {"method": "ssd-sgd", "local": "glu", "pull_every": 1},
        {"method": "ssd-sgd", "local": "glu", "pull_every": 5},
    ],
    ids=str,
)
def test_two_workers_on_quadratics_follow_the_recurrence(method, momentum, decay):
    local, pull_every = method.get("local", "sgd"), method.get("pull_every", 1)
    xs, w = quadratics.recurrence(
        CENTRES, 23, local=local, pull_every=pull_every, momentum=momentum, decay=decay
    )
    for (seen, end), expected in zip(on_quadratics(23, momentum=momentum, weight_decay=decay, **method), xs):
        assert seen == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert end == pytest.approx(w, rel=1e-12, abs=1e-12)
