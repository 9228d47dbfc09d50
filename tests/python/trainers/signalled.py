# SPDX-License-Identifier: Apache-2.0
"""A signal in the middle of a wait."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

INTO_THE_WAIT_S = 0.5  # after which the signal comes


def with_signal(handler: Callable[..., None], wait: Callable[[], Any]) -> Any:
    """What `wait` returns. Meanwhile a SIGTERM comes, for which there is `handler`."""
    before = signal.signal(signal.SIGTERM, handler)
    timer = threading.Timer(INTO_THE_WAIT_S, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    try:
        return wait()
    finally:
        timer.join()
        signal.signal(signal.SIGTERM, before)
