# SPDX-License-Identifier: Apache-2.0
"""A GradScaler that finds an infinity on one rank alone: ranks stay in the same step."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_runs import run
from in_process import run_ranks

torch = pytest.importorskip("torch")

import braid.torch  # noqa: E402

STEPS = 8
INFINITE = 3


def trained(make: Any) -> list[Any]:
    """What each rank's `make(parameters, group)` counts and ends with, if rank 1 has an infinity once."""

    def work(group: Any, _: Any) -> Any:
        parameters = [torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2))]
        optimizer, finish, count = make(parameters, group)
        scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
        for step in range(STEPS):
            factor = float("inf") if step == INFINITE and group.rank() == 1 else 1.0
            scaler.scale(sum(p.square().sum() for p in parameters) * factor).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        finish()
        return count(), [p.tolist() for p in parameters], scaler.get_scale()

    return run_ranks(2, work)


@pytest.mark.parametrize("method", ["od-sgd", "ssd-sgd", "cd-sgd"])
def test_delayed_steps_are_left_out_on_all_ranks(method):
    def make(parameters: Any, group: Any) -> Any:
        more = {"threshold": 1.0} if method == "cd-sgd" else {}
        optimizer = braid.torch.DelayedOptimizer(
            parameters, method, lr=0.05, warmup_steps=2, process_group=group, worker="rank", **more
        )
        return optimizer, optimizer.finish, lambda: optimizer._delayed().steps

    first, second = trained(make)
    assert first == second
    assert first[0] == STEPS - 1 and first[2] == 8.0
    assert all(value < 0.7 for values in first[1] for value in values)


def test_a_local_step_that_is_left_out_counts_in_its_round():
    def make(parameters: Any, group: Any) -> Any:
        model = torch.nn.ParameterList(parameters)
        inner = torch.optim.SGD(parameters, lr=0.05)
        diloco = braid.torch.DiLoCo(model, inner, sync_every=4, process_group=group)
        return inner, diloco.finish, lambda: diloco._steps

    first, second = trained(make)
    assert first[:2] == second[:2]
    assert first[0] == STEPS
    assert (first[2], second[2]) == (16.0, 8.0)  # Each rank by itself.


def test_in_warm_up_before_local_steps_all_ranks_leave_out_a_step():
    def make(parameters: Any, group: Any) -> Any:
        inner = torch.optim.SGD(parameters, lr=0.05)
        averaging = braid.torch.PostLocalSGD(inner, sync_every=2, warmup_steps=6, process_group=group)
        return inner, averaging.finish, lambda: averaging._steps

    first, second = trained(make)
    assert first == second
    assert first[0] == STEPS and first[2] == 8.0


def test_a_script_that_is_delayed_leaves_out_a_step_on_all_ranks():
    environment = {"BRAID_ENABLE": "1", "BRAID_UPDATE": "od-sgd:warmup_steps=5"}
    done = run("unmodified_sgd.py", "scaler", nodes=2, ranks_per_node=1, environment=environment)
    first, second = done.expect(2)
    assert first["saved"] == second["saved"]
    assert first["scale"] == second["scale"] == 32.0
