# SPDX-License-Identifier: Apache-2.0
"""How the steps of a training are cut: bytes are counted, and one step without communication is made, per block."""

BLOCK_STEPS = 5


def block_sizes(steps: int) -> list[int]:
    whole, rest = divmod(steps, BLOCK_STEPS)
    return [BLOCK_STEPS] * whole + ([rest] if rest else [])
