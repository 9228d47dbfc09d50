# SPDX-License-Identifier: Apache-2.0
"""torch calls `autoload` at the end of every `import torch` where braid is installed."""

from __future__ import annotations

import logging
import os

_OFF = ("", "0", "false", "no", "off")


def autoload() -> None:
    """With BRAID_ENABLE=1, as braid.torch.enable(); else nothing. Never breaks `import torch`."""
    if os.environ.get("BRAID_ENABLE", "").lower() in _OFF:
        return
    try:
        from braid.torch import require_torch

        require_torch()
        from braid.torch.attach.substitution import enable

        enable()
    except Exception as error:
        logging.getLogger("braid").warning(
            "BRAID_ENABLE is set, but braid is not in use: %s", error, exc_info=True
        )
