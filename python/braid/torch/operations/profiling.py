# SPDX-License-Identifier: Apache-2.0
"""Collectives in torch's profiler: "braid:all_reduce" from the call to the operation's end.

Older versions of torch forget an event that ends in another thread than it began. There it ends
with the call: the operation's end where the caller waits, else its submission.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._C._profiler import _RecordFunctionFast

from braid.torch.operations import engine
from braid.torch.operations.work import BraidWork

# Costs nothing to speak of; only if it says yes is anything else done.
is_profiling = torch.autograd._profiler_enabled

# Seen to be so in 2.15 and not in 2.7: in between the older way, which works in both.
ENDS_IN_ANY_THREAD = tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 15)

# The words of torch's own backends, which tools look for.
NAMES = {
    engine.BARRIER: "barrier",
    engine.ALL_REDUCE: "all_reduce",
    engine.BROADCAST: "broadcast",
    engine.ALL_GATHER: "all_gather",
    engine.REDUCE_SCATTER: "reduce_scatter",
    engine.GATHER: "gather",
    engine.SCATTER: "scatter",
    engine.ALL_TO_ALL: "all_to_all",
}


class ProfiledWork(BraidWork):
    """A work with its event; `name` is the collective's, if not the operation's own."""

    def __init__(
        self, value: Any, collective: int, tensors: Sequence[torch.Tensor], name: str = ""
    ) -> None:
        super().__init__(value)
        self._event = _RecordFunctionFast(f"braid:{name or NAMES[collective]}", list(tensors))
        self._event.__enter__()

    def finish(self, error: Exception | None = None) -> None:
        # Before anybody who waits goes on: the profiler may be stopped then.
        if ENDS_IN_ANY_THREAD:
            self._event.__exit__(None, None, None)
        super().finish(error)

    def call_ends(self) -> None:
        if not ENDS_IN_ANY_THREAD:
            self._event.__exit__(None, None, None)
