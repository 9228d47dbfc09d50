# SPDX-License-Identifier: Apache-2.0
"""What a node has to send in a step, on average over a cycle. Without headers and what planning says."""

from . import systems
from .systems import System

_FULL, _HALF, _TWO_BITS = 4.0, 2.0, 0.25  # bytes of an element


def bytes_per_step(system: System, parameters: int, nodes: int) -> float:
    """Float32 parameters, one rank on each node. Gradients go to their owners, weights (of sync: sums) to all."""
    push, pull = 1.0 / system.sync_every, 1.0 / system.sync_every
    width, back = _FULL, _FULL
    if system.is_delayed:
        delay = system.delay
        pull = 1.0 / delay.pull_every
        if delay.codec:
            width = ((delay.correction_every - 1) * _TWO_BITS + _FULL) / delay.correction_every
        back = _HALF if delay.pull == "bf16" else _FULL
    elif system.pull == "bf16":
        back = _HALF
    return parameters * (nodes - 1) / nodes * (push * width + pull * back)
