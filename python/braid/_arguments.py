# SPDX-License-Identifier: Apache-2.0
"""Arguments as ctypes takes them. It cuts a text at a NUL character and a number to its bits, silently."""

from __future__ import annotations

import operator
from typing import Any

from braid.errors import InvalidArgumentError


def as_text(what: str, value: str) -> bytes:
    if "\0" in value:
        raise InvalidArgumentError(f"{what} is {value!r}, which has a NUL character in it")
    return value.encode()


def as_number(what: str, value: Any, bits: int) -> int:
    """A whole number from 0 on."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << bits:
        raise InvalidArgumentError(f"{what} is {value!r}; right is a whole number, 0 to {(1 << bits) - 1}")
    return number


def milliseconds(seconds: float | None) -> int:
    """A timeout as the ABI wants it: 0 means the default, and nothing shorter than 1 ms."""
    return 0 if seconds is None else min(max(1, int(seconds * 1000)), 0xFFFFFFFF)
