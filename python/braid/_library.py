# SPDX-License-Identifier: Apache-2.0
"""Finds libbraid.so.0, loads it once per process and checks its version."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from braid import _abi
from braid._version import __version__
from braid.errors import LibraryError

SONAME = "libbraid.so.0"
# Fields are only ever added within one of these, so any patch release fits.
ABI_VERSION = __version__.rpartition(".")[0]

_lock = threading.Lock()
_library: ctypes.CDLL | None = None
_quick_library: ctypes.PyDLL | None = None


def library() -> ctypes.CDLL:
    """libbraid with its signatures declared. Raises LibraryError, which says where it looked."""
    global _library
    with _lock:
        if _library is None:
            _library = _load()
        return _library


def quick_library() -> ctypes.PyDLL:
    """The same functions, called without giving up the interpreter's lock.

    For those that take microseconds: giving the lock up lets another thread in, and getting it back
    then costs more than the call.
    """
    global _quick_library
    loaded = library()
    with _lock:
        if _quick_library is None:
            quick = ctypes.PyDLL(loaded._name, handle=loaded._handle)
            _abi.declare(quick)
            _quick_library = quick
        return _quick_library


def _load() -> ctypes.CDLL:
    tried: list[str] = []
    for candidate in _candidates():
        try:
            loaded = ctypes.CDLL(candidate)
        except OSError as error:
            tried.append(f"  {candidate}: {error}")
            continue
        _check(loaded, candidate)
        return loaded
    looked = "\n".join(tried)
    raise LibraryError(
        f"{SONAME} was not found. Install braid's client library on this node, "
        f"or name the file in BRAID_LIBRARY. Looked at:\n{looked}"
    )


def _candidates() -> Iterator[str]:
    chosen = os.environ.get("BRAID_LIBRARY")
    if chosen:
        # A choice is a choice: falling back to another copy would hide a typing mistake.
        yield chosen
        return
    package = Path(__file__).resolve().parent
    if (package / "lib" / SONAME).exists():  # a wheel's
        yield str(package / "lib" / SONAME)
    checkout = package.parents[1]
    if (checkout / "client" / "include" / "braid.h").exists():
        yield from _built(checkout / "build")
    yield SONAME


def _built(build: Path) -> Iterator[str]:
    """Libraries of a source checkout, the release build first. Sanitized builds need a preload."""
    for preset in ("release", "debug"):
        path = build / preset / "lib" / SONAME
        if path.exists():
            yield str(path)


def _check(loaded: ctypes.CDLL, path: str) -> None:
    try:
        _abi.declare(loaded)
    except AttributeError as error:
        raise LibraryError(f"{path} is not a usable {SONAME}: {error}") from error
    version = loaded.braid_version().decode()
    if not (version == ABI_VERSION or version.startswith(ABI_VERSION + ".")):
        raise LibraryError(
            f"{path} has version {version}, this package needs {ABI_VERSION}.x. "
            "Install the package and the library of one release, or set BRAID_LIBRARY."
        )
