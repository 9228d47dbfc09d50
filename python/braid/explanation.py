# SPDX-License-Identifier: Apache-2.0
"""Why a job's steps take what they take."""

from __future__ import annotations

import ctypes

from braid._library import library
from braid._question import wait_for_answer
from braid._timeouts import milliseconds

_EXPLANATION_BYTES = 64 << 10  # Always enough: see braid.h.


def explain(name: str, *, socket_path: str | None = None, timeout: float | None = None) -> str:
    """Sentences as `braidctl explain` prints them, about this user's job of that name on this node.

    The job has planned tensors (with PyTorch: DDP). NotFoundError: too few of its steps have ended.
    Takes some seconds, at most `timeout` (10 s).
    """
    text = ctypes.create_string_buffer(_EXPLANATION_BYTES)
    path = socket_path.encode() if socket_path else None
    called = library()
    wait_for_answer(
        lambda: called.braid_explain(path, name.encode(), milliseconds(timeout), text, len(text))
    )
    return text.value.decode(errors="replace")
