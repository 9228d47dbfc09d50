# SPDX-License-Identifier: Apache-2.0
"""DDP whose gradients travel encoded between nodes: for a whole script, and by parameter."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from cluster_runs import once, run

torch = pytest.importorskip("torch")
pytestmark = once


@cache
def trained(*patterns: str, codec: str = "") -> list[Any]:
    done = run("coded_training.py", *patterns, nodes=2, ranks_per_node=1, environment={"BRAID_CODEC": codec})
    assert "was not used" not in done.output
    return done.expect(2)


def assert_trained(results: list[Any]) -> None:
    assert len({result["digest"] for result in results}) == 1
    for result in results:
        assert sum(result["losses"][-5:]) < 0.7 * sum(result["losses"][:5])


@pytest.mark.parametrize("codec", ["int8", "topk:ratio=0.25", "2bit:threshold=0.05"])
def test_a_script_is_told_by_its_environment(codec):
    results = trained(codec=codec)
    assert_trained(results)
    assert results[0]["digest"] != trained()[0]["digest"], "nothing was encoded"


def test_parameters_may_have_codecs_of_their_own():
    results = trained("*=int4", "*.bias=none", codec="bf16")
    assert_trained(results)
    assert results[0]["digest"] not in {trained()[0]["digest"], trained("*=int4")[0]["digest"]}


def test_a_codec_that_there_is_not_is_named():
    done = run("coded_training.py", nodes=2, ranks_per_node=1, environment={"BRAID_CODEC": "int9"})
    assert done.exit_code != 0
    assert "no codec is named 'int9'; there are none, bf16" in done.output


def test_a_codec_that_nothing_uses_is_told():
    environment = {"BRAID_CODEC": "int8", "BRAID_KEEP_BUCKETS": "1"}
    done = run("coded_training.py", nodes=2, ranks_per_node=1, environment=environment)
    done.expect(2)
    assert done.output.count("BRAID_CODEC=int8 was not used: it is for float32 gradients") == 1


def test_a_pattern_that_fits_nothing_is_refused():
    from braid.torch import set_codec

    model = torch.nn.Linear(2, 3)
    with pytest.raises(ValueError, match=r"no parameter of the model fits 'head\.\*'.*weight"):
        set_codec(model, {"head.*": "int8"})
    with pytest.raises(TypeError, match="a codec is a text"):
        set_codec(model, {"weight": 8})


def test_of_several_patterns_the_last_one_counts(monkeypatch):
    from braid.torch import set_codec
    from braid.torch.ddp.codecs import codec_of

    model = torch.nn.Linear(2, 3)
    monkeypatch.setenv("BRAID_CODEC", "bf16")
    set_codec(model, {"*": "int8", "bias": "none"})
    assert codec_of(model, "weight", torch.float32) == "int8"
    assert codec_of(model, "bias", torch.float32) == ""
    set_codec(model, {"bias": "int4"})
    assert codec_of(model, "bias", torch.float32) == "int4"
    assert codec_of(model, "weight", torch.float32) == "int8"
    assert codec_of(model, "weight", torch.bfloat16) == ""
    assert codec_of(torch.nn.Linear(2, 3), "weight", torch.float32) == "bf16"
