# SPDX-License-Identifier: Apache-2.0
"""How trainers hand results to the test that started them."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from typing import Any


def report(**results: Any) -> None:
    line = json.dumps({"rank": int(os.environ["RANK"]), **results})
    # One write: ranks of a run share the terminal.
    sys.stdout.write(f"RESULT {line}\n")
    sys.stdout.flush()


def digest(tensors: Iterable[Any]) -> str:
    """Equal only when every bit of every tensor is."""
    sha = hashlib.sha256()
    for tensor in tensors:
        sha.update(tensor.detach().contiguous().numpy().tobytes())
    return sha.hexdigest()
