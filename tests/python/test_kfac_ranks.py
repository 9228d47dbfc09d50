# SPDX-License-Identifier: Apache-2.0
"""K-FAC on ranks that are threads: what each mode computes, and that all ranks have the same bits."""

from __future__ import annotations

import copy
import logging
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.once

from in_process import run_ranks  # noqa: E402
from kfac_models import (  # noqa: E402
    batch,
    descend,
    differentiate,
    far,
    gradients_of,
    kfac_of,
    make_model,
    train,
    trained_by_one,
)
from made_up_gpu import MadeUpCuda  # noqa: E402
from thread_job import ThreadJob  # noqa: E402
from thread_runs import error_of  # noqa: E402

from braid.torch.operations import devices  # noqa: E402

MODES = ("spd", "mpd", "d")
STEPS = range(6)


def trained(ranks: int, steps: range = STEPS, put: Any = None, **options: Any) -> list[list[list[Any]]]:
    """By rank, the preconditioned gradients of each step."""

    def work(group: Any, _: Any) -> list[list[Any]]:
        model = make_model()
        if put is not None:
            for parameter in model.parameters():
                parameter.data = put(parameter.detach())
        return train(model, kfac_of(model, group, **options), steps, group.rank(), ranks)

    return run_ranks(ranks, work)


def assert_same_bits(of_ranks: list[list[list[Any]]]) -> None:
    for mine in of_ranks[1:]:
        for gradients, first in zip(mine, of_ranks[0]):
            assert all(torch.equal(a, b) for a, b in zip(gradients, first))


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("method", ["eigen", "inverse"])
@pytest.mark.parametrize("mode", MODES)
def test_ranks_do_together_what_one_does(mode, method, ranks):
    options: dict[str, Any] = {"compute_method": method, "inv_update_steps": 2, "damping": 0.01}
    of_ranks = trained(ranks, mode=mode, **options)
    assert_same_bits(of_ranks)
    assert far(of_ranks[0], trained_by_one(STEPS, **options)) < 1e-9


def by_dp_definition(ranks: int, steps: range, **options: Any) -> list[list[Any]]:
    """Each rank's own K-FAC, of its part of the mean loss, preconditions the mean gradient of all; a layer's gradient
    is that of its owner. Layers go around."""
    models = [make_model() for _ in range(ranks)]
    kfacs = [kfac_of(model, kl_clip=None, **options) for model in models]
    seen = []
    for step in steps:
        for rank, model in enumerate(models):
            model.zero_grad()
            differentiate(model, batch(step, rank, ranks), 1 / ranks)
        for parameters in zip(*(model.parameters() for model in models)):
            mean = sum(parameter.grad for parameter in parameters)
            for parameter in parameters:
                parameter.grad = mean.clone()
        for kfac in kfacs:
            kfac.step()
        owned = []
        for place, name in enumerate("0257"):
            for parameter in models[place % ranks].get_submodule(name).parameters():
                owned.append(parameter.grad.clone())
        seen.append(owned)
        for model in models:
            for parameter, gradient in zip(model.parameters(), owned):
                parameter.grad = gradient
            descend(model)
    return seen


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("method", ["eigen", "inverse"])
def test_in_the_mode_dp_factors_are_those_of_the_owners_batch(method, ranks):
    options: dict[str, Any] = {"compute_method": method, "damping": 0.01}
    of_ranks = trained(ranks, mode="dp", kl_clip=None, **options)
    assert_same_bits(of_ranks)
    assert far(of_ranks[0], by_dp_definition(ranks, STEPS, **options)) < 1e-9
    assert far(of_ranks[0], trained_by_one(STEPS, kl_clip=None, **options)) > 0.01


def test_factors_may_travel_in_fewer_bytes():
    of_ranks = trained(2, factor_dtype=torch.bfloat16, damping=0.1)
    assert_same_bits(of_ranks)
    assert 0 < far(of_ranks[0], trained_by_one(STEPS, damping=0.1)) < 0.1


def submissions(ranks: int, mode: str, **options: Any) -> list[list[tuple[str, bool]]]:
    """By rank, which factors were submitted in each step, and whether that was before step()."""

    def work(group: Any, _: Any) -> list[tuple[str, bool]]:
        model = make_model()
        kfac = kfac_of(model, group, mode=mode, **options)
        job, seen, is_in_step = group.engine.job, [], [False]
        submit, step = job.submit_raw, kfac.step

        def submit_seen(collective: Any, tensor: int, *rest: Any, **more: Any) -> int:
            spec = job._tensors[tensor]
            if not spec.dynamic:
                seen.append((spec.name, not is_in_step[0]))
            return submit(collective, tensor, *rest, **more)

        def step_seen() -> None:
            is_in_step[0] = True
            step()
            is_in_step[0] = False

        job.submit_raw, kfac.step = submit_seen, step_seen
        train(model, kfac, range(3), group.rank(), ranks)
        return seen

    return run_ranks(ranks, work)


IN_ORDER = [f"kfac1/{layer}.{kind}" for kind, layers in (("A", "0257"), ("G", "7520")) for layer in layers]


def test_factors_go_as_soon_as_they_are_there():
    """In the first step it is not known yet how often a layer is used."""
    for seen in submissions(2, "spd"):
        assert seen == [(name, is_early) for is_early in (False, True, True) for name in IN_ORDER]


@pytest.mark.parametrize("mode", ["mpd", "d"])
def test_factors_of_other_modes_go_in_step(mode):
    for seen in submissions(2, mode):
        assert seen == [(name, False) for _ in range(3) for name in IN_ORDER]


def test_factors_of_the_mode_dp_stay():
    assert submissions(2, "dp") == [[], []]


def test_factors_travel_as_triangles():
    def work(group: Any, _: Any) -> dict[str, int]:
        model = torch.nn.Linear(6, 4)
        kfac = kfac_of(model, group)
        model(torch.randn(3, 6)).sum().backward()
        kfac.step()
        return {spec.name: spec.count for spec in group.engine.job._tensors.values() if not spec.dynamic}

    # One more says how many ranks have used the layer.
    assert run_ranks(2, work) == [{"kfac1/.A": 7 * 8 // 2 + 1, "kfac1/.G": 4 * 5 // 2 + 1}] * 2


@pytest.mark.parametrize("mode", MODES)
def test_several_passes_before_a_step_are_one_batch(mode):
    def work(group: Any, _: Any) -> list[list[Any]]:
        model, rank = make_model(), group.rank()
        kfac = kfac_of(model, group, mode=mode)
        seen = []
        for step, passes in enumerate((1, 2, 2, 1, 1)):  # Ranks see that it changes.
            seen += train(model, kfac, range(step, step + 1), rank, 2, passes)
        return seen

    of_ranks = run_ranks(2, work)
    assert_same_bits(of_ranks)
    if mode != "spd":
        assert far(of_ranks[0], trained_by_one(range(5))) < 1e-9


def test_passes_that_come_beside_those_of_the_step_before_do_not_count():
    """spd: the factor of the first pass has gone when the second one begins."""

    def work(group: Any, _: Any) -> list[Any]:
        model = make_model()
        kfac = kfac_of(model, group, kl_clip=None)
        train(model, kfac, range(1), group.rank(), 2)
        model.zero_grad()
        differentiate(model, batch(1, group.rank(), 2))
        differentiate(model, batch(2, group.rank(), 2))
        kfac.step()
        return [matrix for factors in kfac.state_dict()["layers"].values() for matrix in factors.values()]

    model = make_model()
    kfac = kfac_of(model, kl_clip=None)
    train(model, kfac, range(2))
    right = [matrix for factors in kfac.state_dict()["layers"].values() for matrix in factors.values()]
    for mine in run_ranks(2, work):
        assert all(torch.allclose(a, b, rtol=1e-9) for a, b in zip(mine, right))


@pytest.mark.parametrize("mode", MODES)
def test_a_rank_that_does_not_use_a_layer_does_not_count(mode):
    def work(group: Any, _: Any) -> tuple[list[Any], Any]:
        model = torch.nn.ModuleList([torch.nn.Linear(3, 2), torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)]).double()
        kfac = kfac_of(model, group, mode=mode)
        for step in range(3):
            inputs = torch.ones(4, 3, dtype=torch.float64) + step
            for layer in model[:2] if group.rank() == 0 else model[:1]:
                layer(inputs).sum().backward()
            for parameter in model.parameters():
                parameter.grad = torch.ones_like(parameter)
            kfac.step()
        return gradients_of(model), kfac.state_dict()["layers"]

    (gradients, layers), (others, _) = run_ranks(2, work)
    assert all(torch.equal(a, b) for a, b in zip(gradients, others))
    assert torch.allclose(layers["0"]["A"], layers["1"]["A"], rtol=1e-12)
    assert layers["2"] == {"A": None, "G": None} and torch.equal(gradients[4], torch.ones(2, 3, dtype=torch.float64))


@pytest.mark.parametrize("mode", [*MODES, "dp"])
def test_its_state_goes_on_where_it_is_loaded(mode):
    def work(group: Any, _: Any) -> list[float]:
        model, rank = make_model(), group.rank()
        kfac = kfac_of(model, group, mode=mode)
        train(model, kfac, range(3), rank, 2)
        state, kept = copy.deepcopy(kfac.state_dict()), copy.deepcopy(model)
        right = train(model, kfac, range(3, 6), rank, 2)
        other = kfac_of(kept, group, mode=mode)
        other.load_state_dict(state)
        return [far(train(kept, other, range(3, 6), rank, 2), right), state["layers"]["0"]["A"].norm().item()]

    of_ranks = run_ranks(2, work)
    assert of_ranks[0] == of_ranks[1] and of_ranks[0][0] < 1e-12


def test_a_state_is_not_loaded_while_factors_are_on_their_way():
    def work(group: Any, _: Any) -> str:
        model = make_model()
        kfac = kfac_of(model, group)
        train(model, kfac, range(1), group.rank(), 2)
        state = kfac.state_dict()
        differentiate(model, batch(1))
        told = error_of(lambda: kfac.load_state_dict(state))
        kfac.step()
        kfac.load_state_dict(state)
        return told

    for told in run_ranks(2, work):
        assert told.startswith("KFAC: load_state_dict() comes between a backward pass") and "call step() first" in told


@pytest.mark.parametrize("mode", [*MODES, "dp"])
def test_without_an_inverse_all_ranks_keep_the_last_good_one(mode, caplog):
    options: dict[str, Any] = {"compute_method": "inverse", "factor_update_steps": 100, "kl_clip": None, "mode": mode}

    def work(group: Any, _: Any) -> tuple[list[list[Any]], list[list[Any]], dict[str, int]]:
        model, rank = make_model(), group.rank()
        kfac = kfac_of(model, group, **options)
        train(model, kfac, range(1), rank, 2)
        good = copy.deepcopy(kfac.state_dict())
        bad = copy.deepcopy(good)
        bad["layers"]["5"]["G"].neg_()
        kfac.load_state_dict(bad)
        kept = copy.deepcopy(model)
        mine = train(model, kfac, range(1, 4), rank, 2)
        other = kfac_of(kept, group, **options)
        other.load_state_dict(good)
        return mine, train(kept, other, range(1, 4), rank, 2), dict(kfac.failures)

    with caplog.at_level(logging.WARNING, "braid"):
        of_ranks = run_ranks(2, work)
    assert_same_bits([mine for mine, _, _ in of_ranks])
    for mine, right, failures in of_ranks:
        assert far(mine, right) < 1e-12 and failures == {"5.G": 3}
    told = "K-FAC, step 1, factor 5.G: no inverse: it is not positive definite; the last good one is used"
    assert told in caplog.text


@pytest.mark.parametrize(("mode", "least"), [("spd", 8), ("mpd", 16)])
def test_gradients_on_a_gpu_have_the_same_bits(monkeypatch, mode, least):
    here = trained(2, mode=mode, damping=0.01)
    made = MadeUpCuda()
    monkeypatch.setattr(devices, "cuda", made)
    sent = []
    submit = ThreadJob.submit_device
    monkeypatch.setattr(ThreadJob, "submit_device", lambda *all_, **named: sent.append(1) or submit(*all_, **named))
    there = trained(2, mode=mode, damping=0.01, put=made.put)
    # In each step the eight factors go from the GPU, and inverses that have an owner; on both ranks.
    assert len(sent) >= 2 * len(STEPS) * least
    for mine, right in zip(there, here):
        assert_same_bits([mine, right])


def test_a_failed_job_is_told_by_each_step():
    def work(group: Any, world: Any) -> list[str]:
        model = make_model()
        kfac = kfac_of(model, group)
        train(model, kfac, range(1), group.rank(), 2)
        group.barrier().wait()
        if group.rank() == 1:
            world.fail("rank 1 is lost")
            return []
        differentiate(model, batch(1))
        return [error_of(kfac.step, Exception) for _ in range(2)]

    assert ["rank 1 is lost" in told for told in run_ranks(2, work)[0]] == [True, True]


def test_another_backend_is_named():
    import torch.distributed as dist

    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        kfac_of(make_model())  # One rank needs no group.
        told = error_of(lambda: kfac_of(make_model(), dist.group.WORLD), TypeError)
    finally:
        dist.destroy_process_group()
    assert "KFAC needs a process group of the backend braid, this one is of the backend gloo" in told
