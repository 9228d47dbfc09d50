# SPDX-License-Identifier: Apache-2.0
"""Where the data sets are."""

import os

from compare_lib.paths import ROOT

DIGITS = os.path.join(ROOT, "build", "digits", "digits.csv.gz")
FASHION_MNIST = "/usr/share/datasets/fashion-mnist"
