# SPDX-License-Identifier: Apache-2.0
"""What K-FAC counts, keeps, survives and refuses; on one rank, which needs no daemon."""

from __future__ import annotations

import copy
import io
import logging
import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.once

from kfac_models import (  # noqa: E402
    batch,
    differentiate,
    far,
    gradients_of,
    kfac_of,
    make_model,
    train,
    trained_by_one,
)
from thread_runs import error_of  # noqa: E402


def test_passes_that_do_not_train_do_not_count():
    model = make_model()
    kfac = kfac_of(model)
    seen = []
    for step in range(3):
        with torch.no_grad():
            model(batch(77))
        model.eval()
        model(batch(78))
        model.train()
        seen += train(model, kfac, range(step, step + 1))
    assert far(seen, trained_by_one(range(3))) == 0


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_is_seen_once(reentrant):
    from torch.utils.checkpoint import checkpoint

    model = make_model()
    kfac = kfac_of(model)

    def forward(inputs: Any) -> Any:
        inputs = model[:2](inputs)
        return model[5:](checkpoint(model[2:5], inputs, use_reentrant=reentrant))

    assert far(train(model, kfac, range(3), forward=forward), trained_by_one(range(3))) < 1e-12


def test_a_compiled_model_is_watched():
    model = make_model()
    kfac = kfac_of(model)
    compiled = torch.compile(model, backend="eager")
    assert far(train(model, kfac, range(3), forward=compiled), trained_by_one(range(3))) < 1e-12


def test_its_state_goes_on_where_it_is_loaded():
    options: dict[str, Any] = {"damping": 0.02, "inv_update_steps": 2, "factor_decay": 0.9}
    model = make_model()
    kfac = kfac_of(model, **options)
    train(model, kfac, range(4))
    state, kept = copy.deepcopy(kfac.state_dict()), copy.deepcopy(model)
    right = train(model, kfac, range(4, 8))
    other = kfac_of(kept)
    other.load_state_dict(state)
    assert other.steps == 4 and not any(torch.isnan(g).any() for g in right[-1])
    assert far(train(kept, other, range(4, 8)), right) == 0


def test_a_state_before_the_first_step_begins_anew():
    model, trained = make_model(), make_model()
    state = kfac_of(model).state_dict()
    kfac = kfac_of(trained)
    train(trained, kfac, range(2))
    kfac.load_state_dict(state)
    assert kfac.steps == 0
    trained.load_state_dict(model.state_dict())
    assert far(train(trained, kfac, range(2)), trained_by_one(range(2))) == 0


def test_a_state_may_have_the_names_of_a_wrapped_model():
    model = make_model()
    kfac = kfac_of(model)
    train(model, kfac, range(2))
    state = copy.deepcopy(kfac.state_dict())
    other = kfac_of(make_model())
    other.load_state_dict({**state, "layers": {f"module.{name}": each for name, each in state["layers"].items()}})
    for name, factors in other.state_dict()["layers"].items():
        assert all(torch.equal(matrix, state["layers"][name][kind]) for kind, matrix in factors.items())


def test_a_state_without_factors_is_refused():
    kfac = kfac_of(make_model())
    assert "it was saved without factors" in error_of(lambda: kfac.load_state_dict({"steps": 3}), ValueError)


def test_a_state_of_another_model_is_refused():
    kfac = kfac_of(make_model())
    state = kfac.state_dict()
    assert "differing: ['7']" in error_of(
        lambda: kfac_of(make_model(), skip_layers=["7"]).load_state_dict(state), ValueError
    )
    state["layers"]["5"]["A"] = torch.eye(3)
    assert "factor 5.A has the shape (3, 3), and this model's is 17 × 17" in error_of(
        lambda: kfac.load_state_dict(state), ValueError
    )


def indefinite(kfac: Any, name: str) -> dict[str, Any]:
    """A state in which the G of a layer has no inverse."""
    state = copy.deepcopy(kfac.state_dict())
    state["layers"][name]["G"].neg_()
    return state


def test_without_an_inverse_the_last_good_one_stays(caplog):
    model = make_model()
    kfac = kfac_of(model, compute_method="inverse", factor_update_steps=100, kl_clip=None)
    train(model, kfac, range(1))
    kept = copy.deepcopy(model)
    good = kfac.state_dict()
    kfac.load_state_dict(indefinite(kfac, "5"))
    with caplog.at_level(logging.WARNING, "braid"):
        mine = train(model, kfac, range(1, 4))
    other = kfac_of(kept, compute_method="inverse", factor_update_steps=100, kl_clip=None)
    other.load_state_dict(good)
    assert far(mine, train(kept, other, range(1, 4))) == 0
    assert dict(kfac.failures) == {"5.G": 3} and not other.failures
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == (
        "K-FAC, step 1, factor 5.G: no inverse: it is not positive definite; the last good one is used (failure 1)"
    )
    assert len(said) == 2  # The first failure and the second are told.


def test_a_layer_that_never_had_an_inverse_is_left_alone():
    model = make_model()
    kfac = kfac_of(model, compute_method="inverse", factor_update_steps=100, kl_clip=None)
    train(model, kfac, range(1))
    fresh_model = make_model()
    fresh = kfac_of(fresh_model, compute_method="inverse", kl_clip=None)
    fresh.load_state_dict(indefinite(kfac, "5"))
    differentiate(fresh_model, batch(1))
    before = gradients_of(fresh_model)
    fresh.step()
    unchanged = [torch.equal(a, b) for a, b in zip(before, gradients_of(fresh_model))]
    assert unchanged == [False, False, False, True, True, False] and dict(fresh.failures) == {"5.G": 1}


@pytest.mark.parametrize("method", ["eigen", "inverse"])
def test_what_is_not_finite_does_not_come_into_a_running_average(method, caplog):
    model = make_model()
    kfac = kfac_of(model, compute_method=method)
    train(model, kfac, range(2))
    before = kfac.state_dict()["layers"]
    differentiate(model, torch.full_like(batch(0), math.nan))
    with caplog.at_level(logging.WARNING, "braid"):
        kfac.step()
    for name, factors in kfac.state_dict()["layers"].items():
        assert all(torch.equal(matrix, before[name][kind]) for kind, matrix in factors.items())
    assert set(kfac.failures) == {f"{layer}.{kind}" for layer in "0257" for kind in "AG"}
    assert "factor 0.A: it is not finite; its running average stays as it was" in caplog.text
    model.zero_grad()
    differentiate(model, batch(3))
    kfac.step()
    assert all(torch.isfinite(gradient).all() for gradient in gradients_of(model))


def test_a_factor_with_nan_is_no_eigenproblem(caplog):
    model = make_model()
    kfac = kfac_of(model, factor_update_steps=100)
    train(model, kfac, range(1))
    state = copy.deepcopy(kfac.state_dict())
    state["layers"]["2"]["A"][0, 0] = math.nan
    kfac.load_state_dict(state)
    train(model, kfac, range(1, 2))
    assert dict(kfac.failures) == {"2.A": 1}
    assert "it has values that are not finite; the last good one is used" in caplog.text


def test_hooks_go_with_it():
    model = make_model()
    kfac = kfac_of(model)
    count = sum(len(module._forward_hooks) for module in model.modules())
    kfac.remove()
    other = kfac_of(model)
    assert count == 4 == sum(len(module._forward_hooks) for module in model.modules())
    del other
    assert not any(module._forward_hooks for module in model.modules())


def test_copies_of_the_model_are_not_watched():
    model = make_model()
    kfac = kfac_of(model)
    train(model, kfac, range(1))
    before = copy.deepcopy(kfac.state_dict())["layers"]
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for other in (copy.deepcopy(model), torch.load(file, weights_only=False)):
        differentiate(other, batch(1))
        assert all(torch.isfinite(gradient).all() for gradient in gradients_of(other))
    kfac.step()
    for name, factors in kfac.state_dict()["layers"].items():
        assert all(torch.equal(matrix, before[name][kind]) for kind, matrix in factors.items())


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"mode": "x"}, ValueError, "mode is one of spd, mpd, d, dp, not 'x'"),
        ({"compute_method": "qr"}, ValueError, "compute_method is one of eigen, inverse, not 'qr'"),
        ({"factor_dtype": torch.int8}, ValueError, "factor_dtype is one of None, torch.float64, torch.float32"),
        ({"damping": 0}, ValueError, "damping is 0, and must be above 0"),
        ({"damping": "much"}, ValueError, "damping is 'much', and must be above 0"),
        ({"factor_decay": 1.5}, ValueError, "factor_decay is 1.5, and must be above 0, and at most 1"),
        ({"inv_update_steps": 0}, ValueError, "inv_update_steps is 0, and must be a whole number from 1 on"),
        ({"factor_update_steps": 1.5}, ValueError, "factor_update_steps is 1.5, and must be a whole number"),
        ({"kl_clip": math.nan}, ValueError, "kl_clip is nan, and must be above 0, or None"),
        ({"lr": None}, ValueError, "lr is None, and must be 0 or more"),
        ({"grad_scaler": 2}, TypeError, "grad_scaler is a torch.amp.GradScaler or a function that returns its scale"),
        ({"skip_layers": "Conv"}, TypeError, "skip_layers is a list of patterns: ['Conv']"),
        ({"skip_layers": ["."]}, ValueError, "the model has no Linear or Conv2d that it could precondition"),
        ({"factor_decay": lambda step: 2}, ValueError, "factor_decay(0) is 2, and must be above 0"),
    ],
)
def test_a_bad_argument_is_named(options, kind, text):
    assert text in error_of(lambda: kfac_of(make_model(), **options), kind)


def test_a_function_is_checked_at_each_step():
    model = make_model()
    kfac = kfac_of(model, damping=lambda step: 1 - step)
    train(model, kfac, range(1))
    assert "damping(1) is 0, and must be above 0" in error_of(lambda: train(model, kfac, range(1, 2)), ValueError)
