# SPDX-License-Identifier: Apache-2.0
"""Workers on quadratics, f_j(x) = (x - c_j)²/2, whose gradient at x is x - c_j: delayed methods in plain numbers."""

from __future__ import annotations

from collections.abc import Sequence

START = 4.0
LR = 0.1
ALPHA, BETA = 2.0, 0.5


def recurrence(
    centres: Sequence[float],
    steps: int,
    *,
    nodes: Sequence[int] | None = None,
    local: str = "sgd",
    pull_every: int = 1,
    momentum: float = 0.0,
    decay: float = 0.0,
) -> tuple[list[list[float]], float]:
    """Each rank's x after each step, and the global W after all. `nodes`: of each rank; None: each its own."""
    ranks = range(len(centres))
    nodes = list(ranks) if nodes is None else nodes
    w, v = START, 0.0
    xs, previous = [START] * len(centres), [START] * len(centres)
    seen: list[list[float]] = [[] for _ in ranks]
    for step in range(steps):
        gradients = [x - c for x, c in zip(xs, centres)]
        for j in ranks:
            on_node = [gradients[k] for k in ranks if nodes[k] == nodes[j]]
            g = sum(on_node) / len(on_node)
            is_first = step % pull_every == 0
            h = w if is_first else xs[j]
            u = g + decay * h
            if local == "dc":
                u += 0.04 * g * g * (h - previous[j])
            elif local == "adc":
                u += 2 / (g * g + 1e-7) ** 0.5 * g * g * (h - previous[j])
            elif local == "glu":
                s = ((1 - LR * decay) * previous[j] - h) / (pull_every * LR)
                u = ALPHA * g + decay * h + BETA * s
            if is_first:
                previous[j] = h
            xs[j] = h - LR * u
            seen[j].append(xs[j])
        v = momentum * v + sum(gradients) / len(gradients) + decay * w
        w -= LR * v
    return seen, w


def acco(
    centres: Sequence[float], calls: int, *, momentum: float = 0.0, decay: float = 0.0
) -> tuple[list[float], float]:
    """Acco with SGD: the parameter, which all ranks have alike, after each step(), and W after finish()."""
    w, v, x, half, estimate = START, 0.0, START, 0.0, START
    seen: list[float] = []

    def step(gradient: float) -> tuple[float, float]:
        velocity = momentum * v + gradient + decay * w
        return w - LR * velocity, velocity

    for call in range(calls):
        gradient = sum(x - centre for centre in centres) / len(centres)
        if call % 2 == 0:
            half = gradient
            x, estimate = w, step(half)[0]
        else:
            x = estimate
            w, v = step((half + gradient) / 2)
        seen.append(x)
    if calls % 2:
        w, v = step(half)
    return seen, w
