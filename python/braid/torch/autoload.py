# SPDX-License-Identifier: Apache-2.0
"""torch calls `autoload` at the end of every `import torch` where braid is installed."""

from __future__ import annotations

import logging

from braid.torch import require_torch
from braid.torch.environment.variables import WrongVariable, is_on


def autoload() -> None:
    """With BRAID_ENABLE=1, as braid.torch.enable(); else nothing. Never breaks `import torch`, but for a variable
    that cannot be understood: the script would train without braid, or otherwise than it was asked to."""
    try:
        if not is_on("BRAID_ENABLE"):
            return
        require_torch()
        from braid.torch.attach.substitution import enable

        enable()
    except WrongVariable as error:
        from braid.torch.environment.last_words import end

        end(f"braid: {error}")
    except Exception as error:
        log = logging.getLogger("braid")
        log.warning("BRAID_ENABLE is set, but braid is not in use: %s", error)
        log.debug("it failed here:", exc_info=True)
