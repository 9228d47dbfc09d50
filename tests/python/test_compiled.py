# SPDX-License-Identifier: Apache-2.0
"""torch.compile and braid."""

from __future__ import annotations

import sys

import pytest
from cluster_runs import run

pytest.importorskip("torch")


def test_compiled_ddp_trains_as_with_gloo():
    # Backends that need no C++ compiler on the machine.
    backends = ("eager", "aot_eager")
    launcher = (sys.executable, "-m", "braid.torch.launcher")
    results = run("compiled.py", *backends, launcher=launcher).expect(2)
    assert all(result["done"] == list(backends) for result in results)
    assert all(result["backend"] == "braid" for result in results)
