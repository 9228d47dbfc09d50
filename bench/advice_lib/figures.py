# SPDX-License-Identifier: Apache-2.0
"""What the points say together."""

import statistics

from .measure import PLAIN

# What the advice is held against.
MEDIAN_MAX, NINETY_MAX, REGRET_MAX = 0.08, 0.15, 0.03


def of_point(trace: str, nic_mbit: int, found: dict) -> dict:
    """`found`: see measure.Point.run. Seconds; errors and regret as shares."""
    measured, advice = found["measured"], found["advice"]
    rows = []
    for row, codec in zip(advice["rows"], measured, strict=True):
        predicted = row["step_seconds"]
        rows.append(
            {
                "codec": row["codec"],
                "predicted_seconds": predicted,
                "measured_seconds": measured[codec],
                "error": predicted / measured[codec] - 1,
                "encode_seconds": row["encode_seconds"],
                "exposed_seconds": row["exposed_seconds"],
            }
        )
    taken = next(row for row in rows if row["codec"] == advice["recommended"])
    best = min(rows, key=lambda row: row["measured_seconds"])
    return {
        "trace": trace,
        "nic_mbit": nic_mbit,
        "recommended": advice["recommended"],
        "reason": advice["reason"],
        "best": best["codec"],
        "regret": taken["measured_seconds"] / best["measured_seconds"] - 1,
        "wire_bits_per_second": advice["wire_bits_per_second"],
        "warnings": advice["warnings"],
        "rows": rows,
    }


def summary(points: list[dict]) -> dict:
    """Of all predictions, those without a codec included."""
    errors = sorted(abs(row["error"]) for point in points for row in point["rows"])
    if not errors:
        return {}
    plain = [abs(row["error"]) for point in points for row in point["rows"] if row["codec"] == PLAIN]
    return {
        "predictions": len(errors),
        "median_error": statistics.median(errors),
        "median_error_without_codec": statistics.median(plain),
        "ninety_percent_within": errors[max(0, -(-9 * len(errors) // 10) - 1)],
        "worst_error": errors[-1],
        "worst_regret": max(point["regret"] for point in points),
        "points_beyond_regret": sum(point["regret"] > REGRET_MAX for point in points),
    }
