# SPDX-License-Identifier: Apache-2.0
"""Measures braid, and others beside it, on emulated clusters: what bench/compare, train, steps and scale consist of.

Commands and their worker processes import it. It needs nothing but Python: every peer's interpreter runs a worker.
"""

import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
# The package of scripts/cluster, which makes the clusters; braid's own, unless another comes first; the examples' data.
sys.path += [os.path.join(_ROOT, folder) for folder in ("scripts", "python", "examples")]
