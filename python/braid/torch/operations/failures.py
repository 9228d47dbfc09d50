# SPDX-License-Identifier: Apache-2.0
"""braid's errors as those that torch's users and launchers know."""

from __future__ import annotations

from torch.distributed import DistBackendError

from braid.errors import BraidError, DeadlineExceededError


def as_distributed(cause: BraidError, before: str = "", after: str = "") -> DistBackendError:
    """The same sentence between `before` and `after`. A timeout also has the words by which launchers
    know one."""
    timed_out = "braid: Timed out waiting: " if isinstance(cause, DeadlineExceededError) else ""
    error = DistBackendError(f"{timed_out}{before}{cause}{after}")
    error.__cause__ = cause
    return error
