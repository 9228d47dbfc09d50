# SPDX-License-Identifier: Apache-2.0
"""Handlers of signals run while a rank waits for another one."""

from __future__ import annotations

import pytest
from cluster_runs import run

pytest.importorskip("torch")


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(1, 2)])
def test_handlers_run_in_every_wait(tmp_path, nodes, ranks_per_node):
    results = run("signals.py", str(tmp_path), nodes=nodes, ranks_per_node=ranks_per_node).expect(2)
    assert len(list(tmp_path.iterdir())) == results[0]["waits"]


def test_handlers_run_while_the_daemon_stands_still():
    waits = run("stopped_daemon.py", ranks_per_node=1).expect(1)[0]["done"]
    assert waits[-1] == "close"
