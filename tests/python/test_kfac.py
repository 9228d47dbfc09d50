# SPDX-License-Identifier: Apache-2.0
"""K-FAC on one rank, which needs no daemon: held to its definition, and to kfac-pytorch."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.once

from kfac_models import (  # noqa: E402
    Dense,
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


LAYERS = {
    "linear": (torch.nn.Linear(4, 3), (8, 4)),
    "linear without bias": (torch.nn.Linear(4, 3, bias=False), (8, 4)),
    "linear of sequences": (torch.nn.Linear(4, 3), (3, 5, 4)),
    "stride and padding": (torch.nn.Conv2d(2, 3, 3, stride=2, padding=1), (4, 2, 7, 6)),
    "uneven": (torch.nn.Conv2d(2, 3, (2, 3), stride=(1, 2), padding=(0, 2)), (4, 2, 5, 6)),
    "dilation": (torch.nn.Conv2d(2, 3, 2, dilation=(2, 3), bias=False), (4, 2, 6, 7)),
}


@pytest.mark.parametrize("method", ["eigen", "inverse"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_gradient_is_multiplied_with_the_inverse_of_the_kronecker_product(name, method):
    torch.manual_seed(1)
    layer, shape = copy.deepcopy(LAYERS[name][0]), LAYERS[name][1]
    kfac = kfac_of(layer, damping=0.02, kl_clip=None, compute_method=method, factor_decay=0.7)
    dense = Dense(layer)
    for _ in range(3):
        layer.zero_grad()
        layer(torch.randn(shape)).sin().mean().backward()
        dense.take(0.7)
        expected = dense.preconditioned(method, 0.02)
        kfac.step()
        mine = torch.cat([grad.flatten(1) if grad.dim() > 1 else grad[:, None] for grad in gradients_of(layer)], 1)
        assert (mine - expected).norm() < 1e-5 * expected.norm()
        assert (mine - mine.mean()).norm() > 0.1 * mine.norm()


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("mode", ["zeros", "reflect", "circular"])
def test_paddings_are_those_of_the_module(padding, mode):
    """The gradient of a convolution is what its patches and the gradient of its output give."""
    from braid.torch.kfac.layers import Conv2dLayer

    module = torch.nn.Conv2d(2, 3, (3, 2), padding=padding, padding_mode=mode, bias=False).double()
    inputs = torch.randn(4, 2, 5, 6, dtype=torch.float64)
    output = module(inputs)
    patches = Conv2dLayer("it", module).input_rows(inputs).values
    by_patches = (patches @ module.weight.flatten(1).t()).view(4, *output.shape[2:], 3).permute(0, 3, 1, 2)
    assert torch.allclose(output, by_patches, rtol=1e-12)


# What kfac-pytorch 0.4.2 makes of record() (its repository at 869cf110, MIT licence).
KFAC_PYTORCH: dict[tuple[str, float], list[float]] = {
    ("eigen", 0.001): [
        0.18358, 0.018495, 0.21771, 0.1323, 0.16747, 0.074682, 0.24219, 0.11982,
        0.21667, 0.069428, 0.22434, 0.10667, 0.22266, 0.045035, 0.24341, 0.11839,
    ],
    ("eigen", 1000): [
        0.23712, 0.02389, 0.28121, 0.17089, 0.23814, 0.1077, 0.34166, 0.16868,
        0.32981, 0.10811, 0.34311, 0.16126, 0.36612, 0.069353, 0.39048, 0.18729,
    ],
    ("inverse", 0.001): [
        0.18267, 0.018404, 0.21662, 0.13164, 0.16662, 0.074289, 0.241, 0.11924,
        0.21565, 0.069088, 0.22319, 0.10612, 0.22154, 0.04484, 0.24225, 0.11781,
    ],
    ("inverse", 1000): [
        0.23478, 0.023654, 0.27841, 0.16918, 0.23579, 0.10657, 0.3384, 0.16708,
        0.327, 0.10712, 0.34003, 0.15986, 0.36263, 0.068819, 0.3871, 0.18571,
    ],
}  # fmt: skip


def record(kfac_class: Any, method: str, clip: float) -> list[float]:
    """Norms of all gradients in four steps. Nothing here is random."""
    model = torch.nn.Sequential(
        torch.nn.Conv2d(2, 3, 3, stride=2, padding=1), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(27, 4)
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.arange(parameter.numel()).view(parameter.shape).sin() / 3)
    kfac = kfac_class(model, compute_method=method, kl_clip=clip, damping=0.01, inv_update_steps=2)
    norms = []
    for step in range(4):
        model.zero_grad()
        inputs = torch.arange(6 * 2 * 36).add(100 * step).view(6, 2, 6, 6).square().cos()
        model(inputs).sin().square().mean().backward()
        kfac.step()
        norms += [gradient.norm().item() for gradient in gradients_of(model)]
        descend(model)
    return norms


@pytest.mark.parametrize("clip", [1e-3, 1e3])
@pytest.mark.parametrize("method", ["eigen", "inverse"])
def test_gradients_are_those_that_kfac_pytorch_has_made(method, clip):
    from braid.torch.kfac import KFAC

    assert record(KFAC, method, clip) == pytest.approx(KFAC_PYTORCH[method, clip], rel=1e-4)


@pytest.mark.parametrize("clip", [1e-3, 1e3])
@pytest.mark.parametrize("method", ["eigen", "inverse"])
def test_gradients_are_those_of_kfac_pytorch(method, clip):
    """Where it is installed, from its repository: it is not on PyPI."""
    other = pytest.importorskip("kfac.preconditioner").KFACPreconditioner
    options: dict[str, Any] = {
        "compute_method": method, "kl_clip": clip, "damping": lambda step: 0.01 / (step + 1), "factor_update_steps": 2,
        "inv_update_steps": 4, "skip_layers": ["^5$"],
    }  # fmt: skip
    mine, others = make_model(torch.float32), make_model(torch.float32)
    others[3] = others[6] = torch.nn.ReLU()  # It takes no output that changes in place.
    kfac, other_kfac = kfac_of(mine, **options), other(others, **options)
    for step in range(7):
        others.load_state_dict(mine.state_dict())  # Rounding errors of one step only.
        right = train(others, other_kfac, range(step, step + 1))
        assert far(train(mine, kfac, range(step, step + 1)), right) < 1e-4
    state = other_kfac.state_dict()
    assert kfac.state_dict()["layers"].keys() == state["layers"].keys()
    for name, factors in kfac.state_dict()["layers"].items():
        for kind, matrix in factors.items():
            assert torch.allclose(matrix, state["layers"][name][kind], rtol=1e-4, atol=1e-6)
    other_kfac.load_state_dict(kfac.state_dict())
    kfac.load_state_dict(state)


def test_the_change_of_the_model_is_bounded():
    (free,) = trained_by_one(range(1), kl_clip=None, lr=0.5)
    (clipped,) = trained_by_one(range(1), kl_clip=1e-4, lr=0.5)
    model = make_model()
    differentiate(model, batch(0))
    change = sum((a * b).sum().item() for a, b in zip(free, gradients_of(model))) * 0.5**2
    assert change > 1e-4
    for a, b in zip(free, clipped):
        assert torch.allclose(a * math.sqrt(1e-4 / change), b, rtol=1e-9)


def test_numbers_may_be_functions_of_the_step():
    def by(every: Any, damping: Any) -> list[Any]:
        return trained_by_one(
            range(6), factor_update_steps=every, inv_update_steps=every, damping=damping,
            factor_decay=lambda _: 0.9, kl_clip=lambda _: None, lr=lambda _: 0.1,
        )  # fmt: skip

    asked = []
    changing = by(lambda step: 1 if step < 3 else 5, lambda step: asked.append(step) or 0.1 / (step + 1))
    assert asked == [0, 1, 2, 5]  # Where inverses are made.
    constant = trained_by_one(range(6), damping=0.1, factor_decay=0.9, kl_clip=None)
    assert far(changing[:1], constant[:1]) == 0 and far(changing, constant) > 0.01


def test_between_updates_factors_and_inverses_stay():
    model = make_model()
    kfac = kfac_of(model, factor_update_steps=2, inv_update_steps=4)
    seen = []
    for step in range(6):
        train(model, kfac, range(step, step + 1))
        seen.append(kfac.state_dict()["layers"]["7"]["A"])
    assert [torch.equal(a, b) for a, b in zip(seen, seen[1:])] == [True, False, True, False, True]


def test_layers_may_be_skipped_by_name_and_by_class():
    for patterns, left in ((["^0$", "7"], {"2", "5"}), (["Conv"], {"5", "7"}), ((), {"0", "2", "5", "7"})):
        model = make_model()
        kfac = kfac_of(model, skip_layers=patterns, kl_clip=None)
        differentiate(model, batch(0))
        before = dict(zip((name for name, _ in model.named_parameters()), gradients_of(model)))
        kfac.step()
        assert set(kfac.state_dict()["layers"]) == left
        for name, parameter in model.named_parameters():
            assert torch.equal(parameter.grad, before[name]) == (name.split(".")[0] not in left)


def test_what_cannot_be_preconditioned_is_left_out():
    model = torch.nn.ModuleDict({
        "frozen": torch.nn.Linear(2, 2), "grouped": torch.nn.Conv2d(2, 2, 1, groups=2), "one": torch.nn.Linear(2, 2),
        "tied": torch.nn.Linear(2, 2, bias=False), "tied too": torch.nn.Linear(2, 2, bias=False),
        "unused": torch.nn.Linear(2, 2),
    })  # fmt: skip
    model["frozen"].weight.requires_grad_(False)
    model["tied too"].weight = model["tied"].weight
    kfac = kfac_of(model)
    assert list(kfac.state_dict()["layers"]) == ["one", "unused"]
    model["one"](torch.randn(3, 2)).sum().backward()
    kfac.step()
    assert kfac.state_dict()["layers"]["unused"] == {"A": None, "G": None}
    assert model["unused"].weight.grad is None and not kfac.failures


@pytest.mark.parametrize("passes", [2, 3])
def test_several_passes_before_a_step_are_one_batch(passes):
    model = make_model()
    kfac = kfac_of(model)
    assert far(train(model, kfac, range(3), passes=passes), trained_by_one(range(3))) < 1e-9


def test_scaled_losses_change_nothing():
    model = make_model()
    scales = iter([8.0, 2.0, 1024.0])
    scale = [0.0]
    kfac = kfac_of(model, grad_scaler=lambda: scale[0])
    seen = []
    for step in range(3):
        scale[0] = next(scales)
        model.zero_grad()
        differentiate(model, batch(step), scale[0])
        for parameter in model.parameters():
            parameter.grad.div_(scale[0])  # As scaler.unscale_() does.
        kfac.step()
        seen.append(gradients_of(model))
        descend(model)
    assert far(seen, trained_by_one(range(3))) < 1e-9


def test_a_scaler_of_torch_is_asked():
    model = make_model(torch.float32)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kfac = kfac_of(model, grad_scaler=scaler)
    inputs = batch(0, dtype=torch.float32)
    scaler.scale(model(inputs).square().mean()).backward()
    scaler.unscale_(optimizer)
    kfac.step()
    scaler.step(optimizer)
    scaler.update()
    plain = make_model(torch.float32)
    plain_kfac = kfac_of(plain)
    plain(inputs).square().mean().backward()
    plain_kfac.step()
    for name, factors in plain_kfac.state_dict()["layers"].items():
        for kind, matrix in factors.items():
            assert torch.allclose(kfac.state_dict()["layers"][name][kind], matrix, rtol=1e-5, atol=1e-7)


def test_under_autocast_factors_are_sums_of_float32():
    model = torch.nn.Linear(64, 8)
    kfac = kfac_of(model, kl_clip=None, factor_decay=0.5)
    inputs = torch.full((1 << 12, 64), 1.0)
    inputs[1:] = 2**-6
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(inputs).square().mean()
    loss.backward()
    kfac.step()
    a = kfac.state_dict()["layers"][""]["A"]
    assert a.dtype == torch.float32
    # In bfloat16 the small ones would be lost.
    expected = 0.5 * (1 + ((1 << 12) - 1) * 2**-12) / (1 << 12)
    assert a[0, 1].item() == pytest.approx(expected, rel=1e-5)
