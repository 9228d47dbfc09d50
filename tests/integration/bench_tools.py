# SPDX-License-Identifier: Apache-2.0
"""Where the commands of bench/ are; makes the package that they consist of importable."""

import sys

from braid_build import REPOSITORY

COMPARE, KFAC, SCALE, STEPS, TRAIN = (
    str(REPOSITORY / "bench" / name) for name in ("compare", "kfac", "scale", "steps", "train")
)
GPU = str(REPOSITORY / "bench" / "gpu" / "measure")

if str(REPOSITORY / "bench") not in sys.path:
    sys.path.append(str(REPOSITORY / "bench"))
