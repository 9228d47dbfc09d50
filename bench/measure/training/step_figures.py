# SPDX-License-Identifier: Apache-2.0
"""From what the ranks have measured of steps to what is reported. Pure functions."""

import statistics

from .systems import System

_FULL, _HALF, _TWO_BITS = 4.0, 2.0, 0.25  # bytes of an element
_FIGURES = ("step_seconds", "pass_seconds", "trainer_cpu_seconds", "daemon_cpu_seconds", "bytes_per_step")


def of_turn(ranks: list[dict]) -> dict:
    """Some steps of one system, from what its ranks answered: the slowest one's times, means of the others."""
    slowest = {name: max(rank[name] for rank in ranks) for name in _FIGURES[:2]}
    means = {name: statistics.fmean(rank[name] for rank in ranks) for name in _FIGURES[2:]}
    return {**slowest, **means, "parameters": ranks[0]["parameters"]}


def rows(
    turns: dict[System, list[dict]], compute_seconds: float | None, communication_seconds: float, nodes: int
) -> list[dict]:
    """The figures for one computing time, in the order of the systems; the first one is plain braid. Without
    `compute_seconds`, the real model's, nothing is said about what could be hidden."""
    made: list[dict] = []
    for system, some in turns.items():
        if not some:
            continue
        row = {
            "system": str(system),
            "compute_seconds": compute_seconds,
            **{name: median_of(some, name) for name in (*_FIGURES, "parameters")},
            "turns": some,
        }
        first = made[0] if made else row
        row["to_first"] = row["step_seconds"] / first["step_seconds"]
        row["to_formula"] = row["bytes_per_step"] / bytes_by_formula(system, some[0]["parameters"], nodes)
        row["hidden"], row["to_longest"] = None, None
        if compute_seconds is not None:
            own = communication_seconds * row["bytes_per_step"] / first["bytes_per_step"]
            row["hidden"] = (compute_seconds + own - row["step_seconds"]) / min(compute_seconds, own)
            row["to_longest"] = row["step_seconds"] / max(compute_seconds, own)
        made.append(row)
    return made


def median_of(turns: list[dict], name: str) -> float:
    return statistics.median(turn[name] for turn in turns)


def bytes_by_formula(system: System, parameters: int, nodes: int) -> float:
    """What a node has to send in a step, on average over a cycle, without headers and what planning says. Float32
    parameters, one rank on each node. Gradients go to their owners, weights (of plain braid: sums) to all."""
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
