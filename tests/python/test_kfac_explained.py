# SPDX-License-Identifier: Apache-2.0
"""braidctl explain and trace know the inverses of K-FAC: on real daemons, with inversions as slow as a test wants."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import pytest
from cluster_runs import once, run

torch = pytest.importorskip("torch")
pytestmark = once

RANKS = 4
# Beside these, what else the machine does is little.
EVEN, RANK_2_IS_SLOW = [0.1] * RANKS, [0.1, 0.1, 0.4, 0.1]
FOUND = re.compile(
    r"The inverses of \d\.[AG].* take (\S+) (m?s) on rank 2 on node1; most others need .* for theirs, and wait for "
    r"up to .*: placement is off by (\d+\.\d)"
)


@cache
def explained(mode: str, is_even: bool) -> Any:
    seconds, word = (EVEN, "") if is_even else (RANK_2_IS_SLOW, "The inverses of")
    results = run("kfac_explained.py", mode, json.dumps(seconds), word, nodes=2).expect(RANKS)
    return results[0]


@pytest.mark.parametrize("mode", ["spd", "mpd"])
def test_a_rank_whose_inversions_are_slow_is_named(mode):
    text = explained(mode, is_even=False)["texts"][-1]
    match = FOUND.search(text)
    assert match, text
    seconds = float(match[1]) * (1e-3 if match[2] == "ms" else 1)
    assert seconds >= RANK_2_IS_SLOW[2] and float(match[3]) >= 1.2, text


@pytest.mark.parametrize("mode", ["spd", "mpd", "d"])
def test_nobody_is_blamed_for_inverses_that_are_balanced(mode):
    texts = explained(mode, is_even=True)["texts"]
    assert len(texts) == 3 and not any("The inverses of" in text for text in texts), texts


def test_a_trace_shows_when_each_rank_makes_and_awaits_which_inverse():
    spans = explained("mpd", is_even=False)["spans"]
    for rank, own_seconds in enumerate(RANK_2_IS_SLOW):
        mine = [span for span in spans if span[0] == f"rank {rank}: inverses"]
        made = [(seconds, owner) for _, _, seconds, owner, is_wait in mine if not is_wait]
        assert made and all(owner == rank and seconds >= own_seconds for seconds, owner in made)
        awaited = [(name, owner) for _, name, _, owner, is_wait in mine if is_wait]
        assert awaited and all(owner != rank and name.startswith("waits for ") for name, owner in awaited)
        assert any(span[0] == f"rank {rank}: factors" for span in spans)
