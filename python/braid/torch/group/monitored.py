# SPDX-License-Identifier: Apache-2.0
"""monitored_barrier: a barrier in which rank 0 says who did not come.

It goes over the group's store, which all ranks reach already. gloo's own would have to connect the
ranks first, and that knows no deadline: it waits for ever for the rank that is to be found. The
sentences are gloo's, because scripts look for them.
"""

from __future__ import annotations

import time
from datetime import timedelta

from torch.distributed import DistError, Store

from braid.torch.group.job_watch import JobWatch
from braid.torch.group.stores import key_comes

_PASSED = "passed"


class MonitoredBarrier:
    """The barrier of one process group; every rank calls wait() equally often."""

    def __init__(self, store: Store, rank: int, size: int, job: JobWatch) -> None:
        self._store = store
        self._rank = rank
        self._size = size
        self._job = job
        self._round = 0

    def wait(self, timeout: timedelta, wait_all_ranks: bool) -> None:
        """Raises RuntimeError if a rank does not come in time.

        Rank 0 names the first such rank, or with `wait_all_ranks` all of them. A job that fails
        ends the wait, on all ranks.
        """
        try:
            self._meet(timeout, wait_all_ranks)
        except DistError as error:
            self._job.explain(error)  # The store ends with the rank that has it.
            raise

    def _meet(self, timeout: timedelta, wait_all_ranks: bool) -> None:
        self._round += 1
        prefix = f"braid/monitored_barrier/{self._round}"
        if self._rank != 0:
            self._store.set(f"{prefix}/{self._rank}", "here")
            self._wait_for_verdict(f"{prefix}/verdict", timeout)
            return
        missing = self._missing(prefix, timeout, wait_all_ranks)
        error = self._error(missing, timeout) if missing else ""
        self._store.set(f"{prefix}/verdict", error or _PASSED)
        if error:
            raise RuntimeError(error)

    def _missing(self, prefix: str, timeout: timedelta, wait_all_ranks: bool) -> list[int]:
        end = time.monotonic() + timeout.total_seconds()
        missing = []
        for rank in range(1, self._size):
            if not key_comes(self._store, f"{prefix}/{rank}", end, self._job.check):
                missing.append(rank)
                if not wait_all_ranks:
                    break
        return missing

    def _wait_for_verdict(self, key: str, timeout: timedelta) -> None:
        came = (
            f"Rank {self._rank} successfully reached monitoredBarrier, but received errors while "
            "waiting for send/recv from rank 0"
        )
        end = time.monotonic() + timeout.total_seconds()
        if not key_comes(self._store, key, end, self._job.check):
            raise RuntimeError(
                f"{came}: it has said nothing for {_milliseconds(timeout)} ms. "
                "Please check rank 0 logs for faulty rank."
            )
        verdict = self._store.get(key).decode()
        if verdict != _PASSED:
            raise RuntimeError(f"{came}: {verdict}")

    def _error(self, missing: list[int], timeout: timedelta) -> str:
        names = f"Rank{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}"
        milliseconds = _milliseconds(timeout)
        return (
            f"[Rank 0]: {names} failed to pass monitoredBarrier in {milliseconds} ms. "
            f"Rank 0 timed out in monitoredBarrier after {milliseconds} ms."
        )


def _milliseconds(timeout: timedelta) -> int:
    return timeout // timedelta(milliseconds=1)
