# SPDX-License-Identifier: Apache-2.0
"""The report for a terminal."""

from compare_lib.table import seconds_text

from .figures import MEDIAN_MAX, NINETY_MAX, REGRET_MAX


def of(report: dict) -> str:
    lines = [f"# {report['nodes']} nodes, {report['steps']} steps, cores that encode: {report['encode_threads']:g}"]
    for point in report["points"]:
        lines += _of_point(point)
    if report["summary"]:
        lines += ["", *_of_summary(report["summary"], len(report["points"]))]
    lines += [f"{name} FAILED: {text}" for name, text in report["errors"].items()]
    return "\n".join(lines)


def _of_point(point: dict) -> list[str]:
    nic = f"NIC {point['nic_mbit']} Mbit/s" if point["nic_mbit"] else "no caps"
    lines = ["", f"{point['trace']}, {nic}: {point['reason']}"]
    lines.append(f"  {'codec':<18}{'predicted':>12}{'measured':>12}{'error':>9}")
    for row in point["rows"]:
        predicted, measured = (seconds_text(row[f"{name}_seconds"]) for name in ("predicted", "measured"))
        lines.append(f"  {row['codec']:<18}{predicted:>12}{measured:>12}{row['error']:>+9.1%}")
    lines.append(f"  recommended {point['recommended']}, shortest {point['best']}: regret {point['regret']:.1%}")
    return lines


def _of_summary(summary: dict, points: int) -> list[str]:
    return [
        f"{summary['predictions']} predictions: median error {summary['median_error']:.1%} (at most {MEDIAN_MAX:.0%}),"
        f" 90 % within {summary['ninety_percent_within']:.1%} ({NINETY_MAX:.0%}),"
        f" worst {summary['worst_error']:.1%}; without a codec median {summary['median_error_without_codec']:.1%}",
        f"regret: worst {summary['worst_regret']:.1%} (at most {REGRET_MAX:.0%}),"
        f" beyond it {summary['points_beyond_regret']} of {points} points",
    ]
