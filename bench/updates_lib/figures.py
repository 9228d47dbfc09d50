# SPDX-License-Identifier: Apache-2.0
"""From what the ranks have measured to what is reported. Pure functions."""

import math
import statistics

from compare_lib.figures import slowest
from training_lib.figures import DIVERGED, FAILED, RANKS_DIFFER, TRAINS, WORSE

from . import formulas
from .systems import SYNC, System

_LAST_STEPS = 10


def of_training(seed: int, ranks: list[dict]) -> dict:
    """One training, from what its ranks answered, in their order."""
    losses = [statistics.fmean(at) for at in zip(*(rank["losses"] for rank in ranks), strict=True)]
    evaluations = []
    for at in zip(*(rank["right"] for rank in ranks), strict=True):
        right = sum(one for _, one in at)
        evaluations.append({"steps": at[0][0], "accuracy": 100 * right / ranks[0]["test_pictures"]})
    return {
        "seed": seed,
        "accuracy": evaluations[-1]["accuracy"],
        "loss": _finite(statistics.fmean(losses[-_LAST_STEPS:])),
        "losses": [_finite(loss) for loss in losses],
        "step_seconds": statistics.median(slowest([rank["step_seconds"] for rank in ranks])),
        "evaluations": evaluations,
        "ranks_agree": len({rank["digest"] for rank in ranks}) == 1,
    }


def training_rows(trained: dict[System, list[dict]], errors: dict[str, str], margin: float) -> list[dict]:
    """margin: percent of the test pictures below sync that are worse."""
    baseline = [one["accuracy"] for system, seeds in trained.items() if system.kind == SYNC for one in seeds]
    least = statistics.fmean(baseline) - margin if baseline else -math.inf
    return [_training_row(system, seeds, system.text in errors, least) for system, seeds in trained.items()]


def _training_row(system: System, seeds: list[dict], has_failed: bool, least: float) -> dict:
    accuracies = [one["accuracy"] for one in seeds]
    losses = [one["loss"] for one in seeds]
    return {
        "system": system.text,
        "accuracy": _mean(accuracies),
        "accuracy_deviation": _deviation(accuracies),
        "loss": _mean(losses),
        "loss_deviation": _deviation(losses),
        "step_seconds": _median([one["step_seconds"] for one in seeds]),
        "diverged": sum(_has_diverged(one) for one in seeds),
        "outcome": _outcome(seeds, has_failed, least),
        "seeds": seeds,
    }


def _outcome(seeds: list[dict], has_failed: bool, least: float) -> str:
    if has_failed or not seeds:
        return FAILED
    if any(_has_diverged(one) for one in seeds):
        return DIVERGED
    if not all(one["ranks_agree"] for one in seeds):
        return RANKS_DIFFER
    return WORSE if statistics.fmean(one["accuracy"] for one in seeds) < least else TRAINS


def _has_diverged(seed: dict) -> bool:
    return None in seed["losses"] or seed["loss"] > seed["losses"][0]


def of_turn(ranks: list[dict]) -> dict:
    """Some steps of one system, from what its ranks answered: the slowest one's times, means of the others."""
    slowest_of = {name: max(rank[name] for rank in ranks) for name in ("step_seconds", "pass_seconds")}
    means = ("trainer_cpu_seconds", "daemon_cpu_seconds", "bytes_per_step", "machine_cpu_seconds")
    made = {name: statistics.fmean(rank[name] for rank in ranks) for name in means}
    own = len(ranks) * (made["trainer_cpu_seconds"] + made["daemon_cpu_seconds"])
    return {
        **slowest_of,
        **made,
        "others": (made["machine_cpu_seconds"] - own) / slowest_of["step_seconds"],
        "parameters": ranks[0]["parameters"],
    }


def step_rows(
    turns: dict[System, list[dict]], compute_seconds: float | None, communication_seconds: float, nodes: int
) -> list[dict]:
    """Of one computing time, in the order of the systems; the first one is sync. Without `compute_seconds`, the real
    model's, nothing is said about what could be hidden."""
    rows = []
    for system, some in turns.items():
        if not some:
            continue
        wanted = formulas.bytes_per_step(system, some[0]["parameters"], nodes)
        row = {
            "system": system.text,
            **{name: _median([one[name] for one in some]) for name in some[0]},
            "turns": some,
        }
        first = rows[0] if rows else row
        row["to_sync"] = row["step_seconds"] / first["step_seconds"]
        row["to_formula"] = row["bytes_per_step"] / wanted
        row["hidden"], row["to_longest"] = None, None
        if compute_seconds is not None:
            own = communication_seconds * row["bytes_per_step"] / first["bytes_per_step"]
            hidden = compute_seconds + own - row["step_seconds"]
            row["hidden"] = hidden / min(compute_seconds, own)
            row["to_longest"] = row["step_seconds"] / max(compute_seconds, own)
        rows.append(row)
    return rows


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _mean(values: list) -> float | None:
    return statistics.fmean(values) if values and None not in values else None


def _deviation(values: list) -> float | None:
    return statistics.stdev(values) if len(values) > 1 and None not in values else None


def _median(values: list) -> float | None:
    return statistics.median(values) if values else None


def median_of(turns: list[dict], name: str) -> float:
    return statistics.median(turn[name] for turn in turns)
