# SPDX-License-Identifier: Apache-2.0
"""The first transfer between two ranks over gloo, which connects them.

gloo does that inside the call, and one of the two ranks waits there until the other one comes. So
the call is made where whoever waits for it hears of the job as well.
"""

from __future__ import annotations

from collections.abc import Callable

from torch.distributed import Work

from braid.torch.job_watch import JobWatch


class FirstContacts:
    """Of one rank in one group. Any thread may call."""

    def __init__(self, watch: JobWatch) -> None:
        self._watch = watch
        self._met: set[int] = set()

    def start(self, peer: int, transfer: Callable[[], Work]) -> Work:
        """What `transfer` returns or raises; the job's error, if the job fails before it does."""
        if peer in self._met:
            return transfer()
        work = self._watch.see_through(transfer)
        self._met.add(peer)
        return work
