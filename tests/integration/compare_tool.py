# SPDX-License-Identifier: Apache-2.0
"""Makes the parts of bench/compare, bench/scale, bench/train and bench/updates importable."""

import sys

from braid_build import REPOSITORY

COMPARE = str(REPOSITORY / "bench" / "compare")
SCALE = str(REPOSITORY / "bench" / "scale")
TRAIN = str(REPOSITORY / "bench" / "train")
UPDATES = str(REPOSITORY / "bench" / "updates")

for folder in ("scripts", "bench", "python"):
    path = str(REPOSITORY / folder)
    if path not in sys.path:
        sys.path.append(path)
