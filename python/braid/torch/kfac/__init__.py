# SPDX-License-Identifier: Apache-2.0
"""K-FAC: gradients preconditioned by second moments of layers' inputs and gradients.

    from braid.torch.kfac import KFAC
"""

from braid.torch import require_torch

require_torch()

from braid.torch.kfac.preconditioner import KFAC  # noqa: E402

__all__ = ["KFAC"]
