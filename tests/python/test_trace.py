# SPDX-License-Identifier: Apache-2.0
"""Recording a model's backward pass."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")
from braid.torch import trace  # noqa: E402


def make_net():
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))


def recorded(model, **options):
    return trace.record(model, lambda: model(torch.ones(3, 6)).sum(), **options)


def test_a_trace_lists_the_gradients_from_the_first_layer_on():
    model = make_net()
    made = recorded(model, steps=5, warmup=1, samples=2, name="net")
    assert (made["model"], made["dtype"]) == ("net", "float32")
    assert sorted(made["names"][:2]) == ["0.bias", "0.weight"]
    assert sorted(made["names"][2:]) == ["2.bias", "2.weight"]
    assert sorted(made["numel"]) == [2, 5, 10, 30]
    assert len(made["tb"]) == 4 and all(seconds >= 0 for seconds in made["tb"])
    assert made["forward_seconds"] > 0
    assert [sample["step"] for sample in made["samples"]] == [3, 4]
    assert all(len(sample["tb"]) == 4 and sample["rank"] == 0 for sample in made["samples"])


def test_recording_leaves_no_gradients_and_no_hooks():
    model = make_net()
    recorded(model, steps=1, warmup=0)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(parameter._post_accumulate_grad_hooks for parameter in model.parameters())


def test_times_are_those_of_the_layers(monkeypatch):
    """A clock that goes on by one second with every look shows which look is subtracted."""
    now = iter(range(1000))
    monkeypatch.setattr(trace.time, "perf_counter", lambda: float(next(now)))
    made = recorded(make_net(), steps=3, warmup=0)
    assert made["tb"] == [1.0] * 4 and made["forward_seconds"] == 1.0


def test_a_shared_parameter_is_one_gradient():
    model = make_net()
    model.append(torch.nn.Linear(2, 2))
    model.append(model[3])
    assert len(recorded(model, steps=1, warmup=0)["names"]) == 6


def test_a_file_is_read_back_as_it_was(tmp_path):
    made = recorded(make_net(), steps=2, warmup=0)
    trace.save(made, tmp_path / "net.json")
    assert json.loads((tmp_path / "net.json").read_text()) == made


def test_a_model_without_gradients_is_refused():
    with pytest.raises(ValueError, match="no parameter that requires a gradient"):
        recorded(make_net().requires_grad_(False))


def test_a_parameter_without_a_gradient_is_named():
    model = make_net()
    model.extra = torch.nn.Parameter(torch.ones(2))
    with pytest.raises(ValueError, match="'extra' got no gradient in 2 of 2 steps"):
        trace.record(model, lambda: model[0](torch.ones(1, 6)).sum() + model[2].weight.sum()
                     + model[2].bias.sum(), steps=2)  # fmt: skip


@pytest.mark.parametrize("loss", [None, torch.ones(2), torch.ones(())])
def test_a_step_that_returns_no_loss_is_refused(loss):
    with pytest.raises(ValueError, match="must return the loss"):
        trace.record(make_net(), lambda: loss)


def test_the_command_line_records(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net_of_test.py").write_text(
        "import torch\n"
        "def make(width=4):\n"
        "    return torch.nn.Sequential(torch.nn.Embedding(9, width), torch.nn.Linear(width, 2))\n"
        "def pair():\n"
        "    model = make()\n"
        "    return model, lambda: model(torch.ones(3, dtype=torch.int64)).sum()\n"
    )
    shared = ["--steps", "2", "--warmup", "0"]
    assert trace.main(["--model", "net_of_test:make(5)", "--input", "3,2", "--below", "9",
                       "--output", "a.json", "--name", "net", *shared]) == 0  # fmt: skip
    made = json.loads((tmp_path / "a.json").read_text())
    assert made["model"] == "net" and sorted(made["numel"]) == [2, 10, 45]
    assert trace.main(["--model", "net_of_test:pair", *shared]) == 0
    assert (tmp_path / "trace.json").exists()
    assert trace.main(["--model", "net_of_test:make", *shared]) == 1
    assert "--input" in capsys.readouterr().err
    assert trace.main(["--model", "net_of_test", *shared]) == 1
    assert trace.main(["--model", "net_of_nowhere:make", *shared]) == 1
