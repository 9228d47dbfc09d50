# SPDX-License-Identifier: Apache-2.0
"""The factors of torchcomms' PREMUL_SUM, which it does not tell a backend in Python.

But the operation that such a backend gets is the object that the script has made, so it is known by
what the script gave when it made it.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torchcomms import RedOpType, ReduceOp

_factors: weakref.WeakKeyDictionary[Any, float | torch.Tensor] = weakref.WeakKeyDictionary()
_premul_sum = ReduceOp.PREMUL_SUM


def multiplied(tensor: torch.Tensor, op: Any) -> torch.Tensor:
    """What the ranks give: for PREMUL_SUM a copy, of which SUM is to be taken."""
    if op.type != RedOpType.PREMUL_SUM:
        return tensor
    factor = _factors.get(op)
    if factor is None:
        raise ValueError(
            "braid: the factor of this PREMUL_SUM is not known: torchcomms tells it to no backend in "
            "Python, and braid notes it where ReduceOp.PREMUL_SUM() is called after a communicator "
            "of braid's was made. Make it then, or multiply the tensor by it and take SUM"
        )
    if isinstance(factor, torch.Tensor):
        factor = factor.to(tensor.device).reshape(())  # One element, or it raises.
    return (tensor * factor).to(tensor.dtype)


def _note_factor(factor: Any) -> Any:
    op = _premul_sum(factor)
    _factors[op] = factor
    return op


ReduceOp.PREMUL_SUM = staticmethod(_note_factor)
