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

from braid.torch.methods.delay import Delay

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
    arrived: torch.Tensor | None = None,
    is_first: bool,
) -> None:
    """Updates h, the parameter. `arrived` are the global weights, if h is to go on from them, and
    are only read. `is_first`: h, or `arrived`, is the global state. 16-bit values are computed in
    float32.

    Each pass over the values counts: no other node's gradient hides this. Hence h is not made
    equal to the global weights first.
    """
    begin = h if arrived is None else arrived
    wide = torch.float32 if h.dtype in (torch.float16, torch.bfloat16) else h.dtype
    g, x = gradient.to(wide), begin.to(wide)
    rate_of_g, correction, rate_of_correction = rate, None, 0.0
    if delay.local in ("dc", "adc"):
        correction = _compensation(delay.local, g, x - state[PREVIOUS].to(wide))
        rate_of_correction = rate * (_DC_LAMBDA if delay.local == "dc" else _ADC_LAMBDA)
    elif delay.local == "glu":
        rate_of_g = rate * delay.alpha
        if rate:
            correction = state[PREVIOUS].to(wide) * (1 - rate * weight_decay)
            correction -= x
            rate_of_correction = delay.beta / delay.pull_every
    if keeps_previous(delay) and is_first:
        state[PREVIOUS].copy_(begin)
    # Where values are converted, x is a copy already.
    into = h if h.dtype == wide else x
    if weight_decay:
        x = torch.mul(x, 1 - rate * weight_decay, out=into)
    torch.add(x, g, alpha=-rate_of_g, out=into)
    if correction is not None:
        into.add_(correction, alpha=-rate_of_correction)
    if into is not h:
        h.copy_(into)


def _compensation(local: str, g: torch.Tensor, delay: torch.Tensor) -> torch.Tensor:
    """g² (W - W') without its factor; of adc over √(g² + ε). In the memory of `delay`."""
    delay.mul_(g).mul_(g)
    if local == "adc":
        delay.div_((g * g).add_(_ADC_EPSILON).sqrt_())
    return delay
