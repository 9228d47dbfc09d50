# SPDX-License-Identifier: Apache-2.0
"""Where things are in this checkout."""

import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
RELEASE = os.path.join(ROOT, "build", "release")
