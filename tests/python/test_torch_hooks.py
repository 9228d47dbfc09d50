# SPDX-License-Identifier: Apache-2.0
"""torch's own communication hooks for DDP, over braid as they are."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from cluster_runs import once, run

torch = pytest.importorskip("torch")
pytestmark = once

# All but the casts start collectives in callbacks, and wait for them there. Over gloo they do not end if there are
# several buckets.
HOOKS = ("fp16", "bf16", "powersgd", "batched-powersgd", "quantize-per-tensor", "quantize-per-channel")


@cache
def trained() -> list[Any]:
    done = run("torch_hooks.py", "none", *HOOKS, nodes=2, ranks_per_node=1, environment={"BRAID_ENABLE": "1"})
    results = done.expect(2)
    assert [result["backend"] for result in results] == ["braid"] * 2
    return [result["trained"] for result in results]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_of_torch_trains_over_braid(hook):
    ranks = [result[hook] for result in trained()]
    assert len({rank["digest"] for rank in ranks}) == 1
    for rank in ranks:
        assert rank["buckets"] > 1, "the hook did not get the script's buckets"
        assert sum(rank["losses"][-5:]) < 0.7 * sum(rank["losses"][:5])


def test_hooks_lose_something():
    results = trained()[0]
    assert len({result["digest"] for result in results.values()}) == len(results)
