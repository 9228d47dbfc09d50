# SPDX-License-Identifier: Apache-2.0
"""Handlers of signals run while a rank waits for another one."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_runs import run

torch = pytest.importorskip("torch")

from in_process import run_ranks  # noqa: E402


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(1, 2)])
def test_handlers_run_in_every_wait(tmp_path, nodes, ranks_per_node):
    results = run("signals.py", str(tmp_path), nodes=nodes, ranks_per_node=ranks_per_node).expect(2)
    assert len(list(tmp_path.iterdir())) == results[0]["waits"]


def test_handlers_run_while_the_daemon_stands_still():
    waits = run("stopped_daemon.py", ranks_per_node=1).expect(1)[0]["done"]
    assert waits[-1] == "close"


def test_a_handler_cannot_start_an_operation_while_one_is_submitted(monkeypatch):
    def work(group: Any, _: Any) -> str:
        submit = group.engine.job.submit_raw
        told = []

        def submit_with_handler(*arguments: Any) -> int:
            """As where the ring is full, and a signal's handler runs in the wait for room."""
            monkeypatch.setattr(group.engine.job, "submit_raw", submit)
            with pytest.raises(torch.distributed.DistBackendError) as error:
                group.allreduce([torch.ones(3)])
            told.append(str(error.value))
            return submit(*arguments)

        monkeypatch.setattr(group.engine.job, "submit_raw", submit_with_handler)
        group.allreduce([torch.ones(3)]).wait()
        group.allreduce([torch.ones(3)]).wait()
        return told[0]

    (text,) = run_ranks(1, work)
    assert "let the handler set a flag" in text
