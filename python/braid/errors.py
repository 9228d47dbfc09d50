# SPDX-License-Identifier: Apache-2.0
"""The errors of libbraid as exceptions: one class per braid_error, all of them BraidError."""

from __future__ import annotations


class BraidError(RuntimeError):
    """A call on libbraid failed. `code` is the braid_error, `name` its name, str() the sentence."""

    code = 12
    name = "BRAID_ERROR_INTERNAL"

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class LibraryError(BraidError, ImportError):
    """libbraid.so.0 was not found, could not be loaded, or has another version."""

    code = 2
    name = "BRAID_ERROR_NOT_FOUND"


class InvalidArgumentError(BraidError, ValueError):
    code = 1
    name = "BRAID_ERROR_INVALID_ARGUMENT"


class NotFoundError(BraidError):
    code = 2
    name = "BRAID_ERROR_NOT_FOUND"


class AlreadyExistsError(BraidError):
    code = 3
    name = "BRAID_ERROR_ALREADY_EXISTS"


class PermissionDeniedError(BraidError):
    code = 4
    name = "BRAID_ERROR_PERMISSION_DENIED"


class UnavailableError(BraidError):
    code = 5
    name = "BRAID_ERROR_UNAVAILABLE"


class DeadlineExceededError(BraidError, TimeoutError):
    code = 6
    name = "BRAID_ERROR_DEADLINE_EXCEEDED"


class ResourceExhaustedError(BraidError):
    code = 7
    name = "BRAID_ERROR_RESOURCE_EXHAUSTED"


class MismatchError(BraidError):
    code = 8
    name = "BRAID_ERROR_MISMATCH"


class JobFailedError(BraidError):
    code = 9
    name = "BRAID_ERROR_JOB_FAILED"


class ProtocolError(BraidError):
    code = 10
    name = "BRAID_ERROR_PROTOCOL"


class CancelledError(BraidError):
    code = 11
    name = "BRAID_ERROR_CANCELLED"


class InternalError(BraidError):
    code = 12
    name = "BRAID_ERROR_INTERNAL"


_BY_CODE = {
    kind.code: kind
    for kind in (
        InvalidArgumentError,
        NotFoundError,
        AlreadyExistsError,
        PermissionDeniedError,
        UnavailableError,
        DeadlineExceededError,
        ResourceExhaustedError,
        MismatchError,
        JobFailedError,
        ProtocolError,
        CancelledError,
        InternalError,
    )
}


def error_of(code: int, message: str) -> BraidError:
    """The exception for a braid_error; a code that this package does not know stays visible."""
    kind = _BY_CODE.get(code)
    return kind(message) if kind else BraidError(f"{message} (error {code})", code)
