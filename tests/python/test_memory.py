# SPDX-License-Identifier: Apache-2.0
"""What a job takes of a node's shared memory."""

from __future__ import annotations

import pytest
from cluster_runs import run

pytest.importorskip("torch")


def test_memory_that_nobody_uses_goes_back():
    """What DDP's first broadcast took, and then all but the ranks' inputs and two steps' results."""
    results = run("memory.py", environment={"BRAID_ENABLE": "1"}).expect(2)
    for result in results:
        assert result["planned"]
        assert result["broadcast"] > result["gradients"]
        assert result["idle"] <= result["idle_max"]
        assert result["total"] <= result["bound"]
