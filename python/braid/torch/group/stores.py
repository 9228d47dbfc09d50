# SPDX-License-Identifier: Apache-2.0
"""Waiting for what another rank writes into torch's store."""

from __future__ import annotations

import time
from collections.abc import Callable

from torch.distributed import PrefixStore, Store

_POLL_SECONDS_MIN = 0.001
_POLL_SECONDS_MAX = 0.05


def key_comes(
    store: Store, key: str, end: float, meanwhile: Callable[[], None] | None = None
) -> bool:
    """False if the key is not there by `end` (time.monotonic()). What `meanwhile` raises ends it.

    In small steps: handlers of signals run in between, as they do not while a store waits, and a
    store that waits serves nobody else.
    """
    pause = _POLL_SECONDS_MIN
    while not store.check([key]):
        if meanwhile is not None:
            meanwhile()
        left = end - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(pause * 2, _POLL_SECONDS_MAX)
    return True


def underlying(store: Store) -> Store:
    """The store itself, without prefixes."""
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    return store
