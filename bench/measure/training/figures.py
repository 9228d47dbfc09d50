# SPDX-License-Identifier: Apache-2.0
"""From what the ranks of a training have measured to what is reported. Pure functions."""

import math
import statistics

from ..group import slowest

BLOCK_STEPS = 5  # bytes are counted, and one step without communication is made, per block
TRAINS, DIVERGED, WORSE, RANKS_DIFFER, FAILED = "trains", "diverged", "worse", "ranks differ", "failed"
_LAST_STEPS = 10


def block_sizes(steps: int) -> list[int]:
    whole, rest = divmod(steps, BLOCK_STEPS)
    return [BLOCK_STEPS] * whole + ([rest] if rest else [])


def of_seed(seed: int, ranks: list[dict], ranks_per_node: int, target: float) -> dict:
    """One training, from what its ranks answered, in their order; target in percent."""
    steps = slowest(ranks, "step_seconds")
    synchronous = slowest(ranks, "synchronous_seconds")
    local = slowest(ranks, "local_seconds")
    evaluations = _evaluations(ranks, steps)
    reached = next((one for one in evaluations if one["accuracy"] >= target), None)
    losses = [statistics.fmean(at) for at in zip(*(rank["losses"] for rank in ranks), strict=True)]
    node_bytes = [rank["bytes_sent"] for rank in ranks[::ranks_per_node]]
    per_block = [statistics.fmean(at) for at in zip(*node_bytes, strict=True)]
    return {
        "seed": seed,
        "accuracy": evaluations[-1]["accuracy"],
        "loss": _finite(statistics.fmean(losses[-_LAST_STEPS:])),
        "losses": [_finite(loss) for loss in losses],
        "step_seconds": steps,
        "communication_seconds": [s - t for s, t in zip(synchronous, local, strict=True)],
        "bytes_per_step": [sent / size for sent, size in zip(per_block, block_sizes(len(steps)), strict=True)],
        "evaluations": evaluations,
        "target_steps": reached and reached["steps"],
        "target_seconds": reached and reached["seconds"],
        "ranks_agree": len({rank["digest"] for rank in ranks}) == 1,
    }


def _evaluations(ranks: list[dict], step_seconds: list[float]) -> list[dict]:
    """Accuracy in percent, and the seconds of training before it."""
    made = []
    for at in zip(*(rank["right"] for rank in ranks), strict=True):
        steps, right = at[0][0], sum(one for _, one in at)
        accuracy = 100 * right / ranks[0]["test_pictures"]
        made.append({"steps": steps, "seconds": sum(step_seconds[:steps]), "accuracy": accuracy})
    return made


def rows(trained: dict, errors: dict[str, str], margin: float) -> list[dict]:
    """By system the seeds that were trained; margin in percent of the test pictures."""
    made = [_row(str(system), seeds) for system, seeds in trained.items()]
    plain = [row["accuracy"] for row, system in zip(made, trained, strict=True) if system.is_plain]
    baseline = next((accuracy for accuracy in plain if accuracy is not None), -math.inf)
    for row in made:
        row["outcome"] = _outcome(row, row["system"] in errors, baseline - margin)
    return made


def courses(rows: list[dict]) -> dict[str, list[dict]]:
    """By system the mean loss of so many steps, and the steps and seconds of training until then; means over the
    seeds. It ends where a loss is no number."""
    return {row["system"]: _course(row["seeds"]) for row in rows if row["seeds"]}


def _course(seeds: list[dict]) -> list[dict]:
    points: list[dict] = []
    for end in range(_LAST_STEPS, len(seeds[0]["losses"]) + 1, _LAST_STEPS):
        losses = [loss for seed in seeds for loss in seed["losses"][end - _LAST_STEPS : end]]
        if None in losses:
            break
        seconds = statistics.fmean(sum(seed["step_seconds"][:end]) for seed in seeds)
        points.append({"steps": end, "seconds": seconds, "loss": statistics.fmean(losses)})
    return points


def _row(system: str, seeds: list[dict]) -> dict:
    reached = [one for one in seeds if one["target_seconds"] is not None]
    reached_by_all = reached if len(reached) == len(seeds) else []
    return {
        "system": system,
        "accuracy": _mean([one["accuracy"] for one in seeds]),
        "accuracy_deviation": _deviation([one["accuracy"] for one in seeds]),
        "loss": _mean([one["loss"] for one in seeds]),
        "loss_deviation": _deviation([one["loss"] for one in seeds]),
        "step_seconds": _settled(statistics.median, seeds, "step_seconds", BLOCK_STEPS),
        "communication_seconds": _settled(statistics.median, seeds, "communication_seconds", 1),
        "bytes_per_step": _settled(statistics.fmean, seeds, "bytes_per_step", 1),
        "target_seconds": _mean([one["target_seconds"] for one in reached_by_all]),
        "target_steps": _mean([one["target_steps"] for one in reached_by_all]),
        "target_reached": len(reached),
        "seeds": seeds,
    }


def _outcome(row: dict, has_failed: bool, least: float) -> str:
    if has_failed or not row["seeds"]:
        return FAILED
    if any(None in seed["losses"] or seed["loss"] > seed["losses"][0] for seed in row["seeds"]):
        return DIVERGED
    if not all(seed["ranks_agree"] for seed in row["seeds"]):
        return RANKS_DIFFER
    return WORSE if row["accuracy"] < least else TRAINS


def _settled(middle, seeds: list[dict], name: str, skipped: int) -> float | None:
    values = [value for one in seeds for value in one[name][skipped:]]
    return middle(values) if values else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _mean(values: list) -> float | None:
    return statistics.fmean(values) if values and None not in values else None


def _deviation(values: list) -> float | None:
    return statistics.stdev(values) if len(values) > 1 and None not in values else None
