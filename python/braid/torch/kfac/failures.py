# SPDX-License-Identifier: Apache-2.0
"""What went wrong with factors and inverses, and did not stop the training."""

from __future__ import annotations

import logging
from collections import Counter

_log = logging.getLogger("braid")


class Failures:
    """Counts failures by factor; the same counts on all ranks. The logger `braid` hears of the
    first failure of a factor, the second, the fourth, the eighth …"""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def note(self, factor: str, step: int, text: str) -> None:
        """`text` says what has happened, and what is used instead."""
        self.counts[factor] += 1
        count = self.counts[factor]
        if count & (count - 1) == 0:
            _log.warning("K-FAC, step %d, factor %s: %s (failure %d)", step, factor, text, count)
