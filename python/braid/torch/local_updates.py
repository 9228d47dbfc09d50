# SPDX-License-Identifier: Apache-2.0
"""What a worker does with its own gradient while the global state is on its way.

W: the global weights pulled last; h: this worker's weights; g: its mean gradient at h; η: the local
learning rate; λ: weight decay.

    sgd   h ← h - η (g + λ h)
    dc    h ← h - η (g + λ h + c g² (W - W')), c = 0.04, W' the global weights pulled before W
    adc   the same with c = 2 / √(g² + 1e-7)
    glu   h ← h - η (α g + λ h + β s), s = ((1 - η λ) W' - h) / (k η)

W' of glu is renewed by the first update after a pull, which itself still sees the old one: s is
then the mean of all workers' gradients over the last k steps. (Renewing it before, or not using the
new one within the window, trains less far from the global state.)

sgd, dc and adc: Xu et al., "OD-SGD: One-Step Delay Stochastic Gradient Descent for Distributed
Training", 2020, by its public code, but with DC's arguments in their right order and mean gradients;
dc: Zheng et al., "Asynchronous Stochastic Gradient Descent with Delay Compensation", ICML 2017; glu:
Xu et al., "SSD-SGD: Communication Sparsification for Distributed Deep Learning Training", 2021,
likewise.
"""

from __future__ import annotations

from typing import Any

import torch

from braid.torch.delay import Delay

_DC_LAMBDA = 0.04
_ADC_LAMBDA = 2.0
_ADC_EPSILON = 1e-7
PREVIOUS = "previous"


def keeps_previous(delay: Delay) -> bool:
    """Whether state["previous"] has global weights of a pull before: for the update, or because
    parameters are not near the global state for several steps."""
    return delay.local != "sgd" or delay.pull_every > 1


def local_update(
    delay: Delay,
    h: torch.Tensor,
    gradient: torch.Tensor,
    state: dict[str, Any],
    *,
    rate: float,
    weight_decay: float,
    is_first: bool,
) -> None:
    """Updates h in place. `is_first`: h is the global state, pulled just now. 16-bit values are
    computed in float32."""
    wide = torch.float32 if h.dtype in (torch.float16, torch.bfloat16) else h.dtype
    g, x = gradient.to(wide), h.to(wide)
    step = g + weight_decay * x if weight_decay else g.clone()
    previous = state[PREVIOUS].to(wide) if keeps_previous(delay) else None
    if delay.local == "dc":
        step += _DC_LAMBDA * g * g * (x - previous)
    elif delay.local == "adc":
        square = g * g
        step += _ADC_LAMBDA / (square + _ADC_EPSILON).sqrt() * square * (x - previous)
    elif delay.local == "glu":
        step += (delay.alpha - 1) * g
        if rate:
            pulled = (1 - rate * weight_decay) * previous - x
            step += delay.beta / (delay.pull_every * rate) * pulled
    if previous is not None and is_first:
        state[PREVIOUS].copy_(h)
    h.copy_(x - rate * step)
