# SPDX-License-Identifier: Apache-2.0
"""The reports for a terminal."""

from compare_lib.table import seconds_text

from .options import ACCURACY, REAL, TIMELINE

_ACCURACY_COLUMNS = ["system", "accuracy, %", "loss", "step", "diverged", "outcome"]
_STEPS_COLUMNS = ["system", "step", "to sync", "hidden", "to longest", "MB sent", "to formula"]
_STEPS_COLUMNS += ["trainer", "daemon", "others"]


def of(report: dict) -> str:
    lines = [f"# {heading(report)}"]
    if report["kind"] == ACCURACY:
        lines += aligned(accuracy_cells(report["rows"]))
    elif report["kind"] != TIMELINE:
        for part in report["parts"]:
            lines += ["", f"# {part_heading(part)}", *aligned(step_cells(part["rows"]))]
    # All of it was said when it happened, and is in the JSON file.
    lines += [f"{name} FAILED: {text.strip().splitlines()[0]}" for name, text in report["errors"].items()]
    return "\n".join(lines)


def aligned(cells: list[list[str]]) -> list[str]:
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    lines = []
    for first, *others in cells:
        texts = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *texts]))
    return lines


def heading(report: dict) -> str:
    where = f"nodes: {report['nodes']}, NIC {report['nic_mbit']} Mbit/s, flows {report['flow_mbit']} Mbit/s"
    if report["kind"] == ACCURACY:
        return ", ".join(
            [
                f"{report['dataset']}: {report['steps']} steps of {report['batch_size']} pictures per node",
                f"{report['warmup_steps']} of them to warm up, {report['seeds']} seeds, width {report['hidden']}",
                f"learning rate {report['learning_rate']:g}, momentum {report['momentum']:g}",
                where,
            ]
        )
    communication = report["communication_seconds"]
    measured = "not measured" if communication is None else seconds_text(communication)
    if report["kind"] == TIMELINE:
        ratio = report["communication"]
        return f"{where}; communication of sync {measured}, {ratio:g} times computing; {report['steps']} steps"
    return f"communication of sync {measured}, {report['rounds']} rounds of {report['steps']} steps, {where}"


def part_heading(part: dict) -> str:
    if part["communication"] == REAL:
        return "real computing"
    return f"communication {part['communication']:g} times computing, which is {seconds_text(part['compute_seconds'])}"


def accuracy_cells(rows: list[dict]) -> list[list[str]]:
    made = [_ACCURACY_COLUMNS]
    for row in rows:
        made.append(
            [
                row["system"],
                _spread_text(row["accuracy"], row["accuracy_deviation"], 2),
                _spread_text(row["loss"], row["loss_deviation"], 4),
                "-" if row["step_seconds"] is None else seconds_text(row["step_seconds"]),
                f"{row['diverged']} of {len(row['seeds'])}",
                row["outcome"],
            ]
        )
    return made


def step_cells(rows: list[dict]) -> list[list[str]]:
    made = [_STEPS_COLUMNS]
    for row in rows:
        made.append(
            [
                row["system"],
                seconds_text(row["step_seconds"]),
                f"{row['to_sync']:.2f}",
                _or_dash(row["hidden"]),
                _or_dash(row["to_longest"]),
                f"{row['bytes_per_step'] / 1e6:.1f}",
                f"{row['to_formula']:.3f}",
                seconds_text(row["trainer_cpu_seconds"]),
                seconds_text(row["daemon_cpu_seconds"]),
                f"{row['others']:.2f}",
            ]
        )
    return made


def _spread_text(mean: float | None, deviation: float | None, digits: int) -> str:
    if mean is None:
        return "-"
    return f"{mean:.{digits}f}" + ("" if deviation is None else f" ± {deviation:.{digits}f}")


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
