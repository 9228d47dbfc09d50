# SPDX-License-Identifier: Apache-2.0
"""Which versions of torch this package works with."""

from __future__ import annotations

import torch

OLDEST = (2, 7)


def require_torch() -> None:
    """Raises where somebody asks for braid: an older torch would fail later, and not say why."""
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < OLDEST:
        oldest = ".".join(str(part) for part in OLDEST)
        raise RuntimeError(
            f"braid needs torch {oldest} or later, and this is torch {torch.__version__}"
        )
