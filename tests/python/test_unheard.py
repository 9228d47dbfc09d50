# SPDX-License-Identifier: Apache-2.0
"""Variables of torch and NCCL: heard, or said not to be."""

from __future__ import annotations

import pytest
from cluster_runs import run

pytest.importorskip("torch")


@pytest.mark.parametrize("variable", ["TORCH_DIST_NAN_CHECK", "TORCH_NCCL_NAN_CHECK"])
def test_a_nan_is_refused_where_the_environment_asks_for_that(variable):
    environment = {"BRAID_ENABLE": "1", variable: "1"}
    first, second = run("nan_check.py", nodes=1, environment=environment).expect(2)
    assert second["text"] == f"braid: rank 1 gives a NaN to all_reduce, and {variable} is set"
    assert first["total"] == second["total"] == 2.0
    for rank, result in enumerate((first, second)):
        assert f"rank {rank} gives a NaN to DDP's gradients" in result["gradients"]


def test_what_is_not_heard_is_said_once(monkeypatch, caplog):
    from braid.torch.group import unheard

    monkeypatch.setattr(unheard, "_told", set())
    for name in ("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "NCCL_SOCKET_IFNAME", "TORCH_NCCL_ASYNC_ERROR_HANDLING"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    for _ in range(2):
        unheard.tell_unheard()
    first, second = caplog.messages
    assert "TORCH_DISTRIBUTED_DEBUG=DETAIL" in first
    assert "does not hear NCCL_SOCKET_IFNAME, TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC: its network" in second
