# SPDX-License-Identifier: Apache-2.0
"""torch calls `autoload` at the end of every `import torch` where braid is installed."""

from __future__ import annotations

import logging

from braid.torch import is_on, require_torch


def autoload() -> None:
    """With BRAID_ENABLE=1, as braid.torch.enable(); else nothing. Never breaks `import torch`."""
    if not is_on("BRAID_ENABLE"):
        return
    try:
        require_torch()
        from braid.torch.attach.substitution import enable

        enable()
    except Exception as error:
        logging.getLogger("braid").warning(
            "BRAID_ENABLE is set, but braid is not in use: %s", error, exc_info=True
        )
