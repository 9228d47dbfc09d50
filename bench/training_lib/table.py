# SPDX-License-Identifier: Apache-2.0
"""The report for a terminal."""

import re

from compare_lib.table import number_text, seconds_text


def of(report: dict) -> str:
    filled = cells(report)
    widths = [max(len(line[i]) for line in filled) for i in range(len(filled[0]))]
    lines = [f"# {heading(report)}"]
    for system, *others in filled:
        texts = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([system.ljust(widths[0]), *texts]))
    # All of it was said when it happened, and is in the JSON file.
    lines += [f"{name} FAILED: {_reason(text)}" for name, text in report["errors"].items()]
    return "\n".join(lines)


def heading(report: dict) -> str:
    layers = f" of {report['layers']} hidden layers" if report["dataset"] == "digits" else ""
    return ", ".join(
        [
            f"{report['dataset']}: {report['steps']} steps of {report['batch_size']} pictures per rank",
            f"{report['seeds']} seeds, width {report['hidden']}{layers}",
            f"learning rate {report['learning_rate']:g}, momentum {report['momentum']:g}",
            f"nodes: {report['nodes']}, ranks per node: {report['ranks_per_node']}",
            f"NIC {report['nic_mbit']} Mbit/s, flows {report['flow_mbit']} Mbit/s",
        ]
    )


def cells(report: dict) -> list[list[str]]:
    """The heading and a line per system."""
    target = f"to {report['target']:g} %"
    made = [["system", "accuracy, %", "loss", "step", "communication", "sent per step", target, "steps", "outcome"]]
    for row in report["rows"]:
        made.append(
            [
                row["system"],
                _spread_text(row["accuracy"], row["accuracy_deviation"], 2),
                _spread_text(row["loss"], row["loss_deviation"], 4),
                _or_dash(seconds_text, row["step_seconds"]),
                _or_dash(seconds_text, row["communication_seconds"]),
                _or_dash(_bytes_text, row["bytes_per_step"]),
                _or_dash(seconds_text, row["target_seconds"]),
                _or_dash("{:.0f}".format, row["target_steps"]),
                row["outcome"],
            ]
        )
    return made


def _spread_text(mean: float | None, deviation: float | None, digits: int) -> str:
    if mean is None:
        return "-"
    return f"{mean:.{digits}f}" + ("" if deviation is None else f" ± {deviation:.{digits}f}")


def _bytes_text(size: float) -> str:
    for unit, name in ((1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{number_text(size / unit)} {name}"
    return f"{size:.0f} B"


def _or_dash(text, value) -> str:
    return "-" if value is None else text(value)


def _reason(text: str) -> str:
    """What the tool saw, and the last error that a process named."""
    seen, *said = text.strip().splitlines() or [""]
    named = [line for line in said if re.search(r"Error\b|what\(\):", line)]
    return f"{seen}: {named[-1].strip()}" if named else seen
