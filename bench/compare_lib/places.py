# SPDX-License-Identifier: Apache-2.0
"""Where the checkout is. Workers import it, too: they find nothing but the folders of bench/."""

import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
