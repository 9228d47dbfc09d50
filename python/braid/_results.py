# SPDX-License-Identifier: Apache-2.0
"""The results of a job's operations."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_size_t, c_void_p
from typing import Any


class ResultsMixin:
    """The part of Job that reads results, between wait() and release()."""

    _library: Any
    _open: Any
    _check: Any

    def result(self, ticket: int) -> memoryview:
        """The result in shared memory, read-only bytes, valid until release()."""
        return _readonly(*self.result_address(ticket))

    def result_address(self, ticket: int) -> tuple[int, int]:
        """Address and size in bytes of the result."""
        data, size = c_void_p(), c_size_t()
        self._check(self._library.braid_result(self._open(), ticket, byref(data), byref(size)))
        return data.value or 0, size.value

    def result_of_rank(self, ticket: int, rank: int) -> memoryview:
        """The block of an all-gather that `rank` gave."""
        return _readonly(*self.result_address_of_rank(ticket, rank))

    def result_address_of_rank(self, ticket: int, rank: int) -> tuple[int, int]:
        data, size = c_void_p(), c_size_t()
        self._check(
            self._library.braid_result_of_rank(self._open(), ticket, rank, byref(data), byref(size))
        )
        return data.value or 0, size.value


def _readonly(address: int, nbytes: int) -> memoryview:
    if nbytes == 0:
        return memoryview(b"")
    return memoryview((ctypes.c_ubyte * nbytes).from_address(address)).cast("B").toreadonly()
