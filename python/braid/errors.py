# SPDX-License-Identifier: Apache-2.0
"""The errors of libbraid as exceptions: one class per braid_error, all of them BraidError."""

from __future__ import annotations

import re


class BraidError(RuntimeError):
    """A call on libbraid failed. `code` is the braid_error, `name` its name, str() the sentence."""

    code = 12
    name = "BRAID_ERROR_INTERNAL"

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code

    def __init_subclass__(cls, code: int = 12, **others: object) -> None:
        super().__init_subclass__(**others)
        words = re.findall("[A-Z][a-z]+", cls.__name__)[:-1]
        cls.code, cls.name = code, "_".join(["BRAID_ERROR", *words]).upper()


# fmt: off
class InvalidArgumentError(BraidError, ValueError, code=1): ...
class NotFoundError(BraidError, code=2): ...
class AlreadyExistsError(BraidError, code=3): ...
class PermissionDeniedError(BraidError, code=4): ...
class UnavailableError(BraidError, code=5): ...
class DeadlineExceededError(BraidError, TimeoutError, code=6): ...
class ResourceExhaustedError(BraidError, code=7): ...
class MismatchError(BraidError, code=8): ...
class JobFailedError(BraidError, code=9): ...
class ProtocolError(BraidError, code=10): ...
class CancelledError(BraidError, code=11): ...
class InternalError(BraidError, code=12): ...
# fmt: on

_BY_CODE = {kind.code: kind for kind in BraidError.__subclasses__()}


class LibraryError(BraidError, ImportError, code=NotFoundError.code):
    """libbraid.so.0 was not found, could not be loaded, or has another version."""


LibraryError.name = NotFoundError.name


def error_of(code: int, message: str) -> BraidError:
    """The exception for a braid_error; a code that this package does not know stays visible."""
    kind = _BY_CODE.get(code)
    return kind(message) if kind else BraidError(f"{message} (error {code})", code)
