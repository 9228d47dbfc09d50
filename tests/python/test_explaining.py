# SPDX-License-Identifier: Apache-2.0
"""BRAID_EXPLAIN: rank 0 logs once why the steps take what they take."""

from __future__ import annotations

import pytest
from cluster_runs import once, run

pytest.importorskip("torch")
pytestmark = once


def heard(**environment: str) -> list[list[str]]:
    done = run("explained.py", nodes=2, ranks_per_node=2, environment=environment)
    return [result["heard"] for result in done.expect(4)]


def test_rank_0_says_it_once():
    first, *others = heard(BRAID_EXPLAIN="1", BRAID_EXPLAIN_SECONDS="1")
    (text,) = first
    assert "4 ranks on 2 nodes; a step takes" in text and "\n1. " in text
    assert not any(others)


def test_a_time_that_is_none_is_named():
    first, *others = heard(BRAID_EXPLAIN="1", BRAID_EXPLAIN_SECONDS="soon")
    assert first == ["BRAID_EXPLAIN_SECONDS is a whole number from 1 to 86400, not 'soon': 60"]
    assert not any(others)
