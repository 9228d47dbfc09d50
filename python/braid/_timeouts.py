# SPDX-License-Identifier: Apache-2.0
"""How long a job's operations may take."""

from __future__ import annotations

from typing import Any


class TimeoutsMixin:
    """The part of Job that sets the times of operations, on this rank."""

    _library: Any
    _open: Any
    _check: Any
    _opened_timeout_ms: int
    _timeout_ms: int

    def set_timeout(self, timeout: float | None) -> None:
        """For operations that are submitted from now on and name none; None: as it was at first."""
        timeout_ms = milliseconds(timeout)
        self._check(self._library.braid_set_timeout(self._open(), timeout_ms))
        self._timeout_ms = timeout_ms or self._opened_timeout_ms

    def extend_timeout(self, more: float) -> None:
        """So much beside it for those that are submitted until the first of them has ended."""
        self._check(self._library.braid_extend_timeout(self._open(), milliseconds(more)))


def milliseconds(seconds: float | None) -> int:
    """A timeout as the ABI wants it: 0 means the default, and nothing shorter than 1 ms."""
    return 0 if seconds is None else min(max(1, int(seconds * 1000)), 0xFFFFFFFF)
