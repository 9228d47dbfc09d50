# SPDX-License-Identifier: Apache-2.0
"""braid's errors as those that torch's users and launchers know."""

from __future__ import annotations

from typing import Any

from torch.distributed import DistBackendError

from braid.errors import BraidError, DeadlineExceededError


def as_distributed(cause: BraidError, before: str = "", after: str = "") -> DistBackendError:
    """The same sentence between `before` and `after`. A timeout also has the words by which launchers
    know one."""
    timed_out = "braid: Timed out waiting: " if isinstance(cause, DeadlineExceededError) else ""
    error = DistBackendError(f"{timed_out}{before}{cause}{after}")
    error.__cause__ = cause
    return error


def timed_out(text: str) -> DistBackendError:
    """With the words by which launchers know a timeout."""
    return DistBackendError(f"braid: Timed out waiting: {text}")


def refuse_handlers(lock: Any, job: str) -> None:
    """A signal's handler may run while its thread submits under this re-entrant lock. The operation that
    is being submitted cannot come behind the handler's."""
    if lock._is_owned():
        raise DistBackendError(
            f"a signal's handler starts an operation of job {job} while the thread that it "
            "interrupts is starting one: let the handler set a flag, and look at the flag after "
            "the step"
        )
