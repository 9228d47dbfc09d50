# SPDX-License-Identifier: Apache-2.0
"""The report for a terminal, and how figures are written for people."""

from .paths import BEFORE

_BYTES = ("bytes", lambda row: bytes_text(row["bytes"]))
_SYSTEM = ("system", lambda row: row["system"])
_TIMES = [
    ("median", lambda row: seconds_text(row["median_seconds"])),
    ("p99", lambda row: seconds_text(row["p99_seconds"])),
]
_PROCESSOR = [
    ("CPU s/GB", lambda row: number_text(row["cpu_seconds_per_gigabyte"])),
    ("machine s/GB", lambda row: number_text(row["machine_seconds_per_gigabyte"])),
]
_COLUMNS = [
    _BYTES,
    _SYSTEM,
    *_TIMES,
    ("bus Gbit/s", lambda row: number_text(row["bus_gbit_per_second"])),
    ("of wire", lambda row: percent_text(row["line_fraction"])),
    ("of NIC", lambda row: percent_text(row["nic_fraction"])),
    *_PROCESSOR,
]
_COLUMNS_THROUGH_TORCH = [
    ("collective", lambda row: row["collective"]),
    _SYSTEM,
    ("dtype", lambda row: row["dtype"]),
    _BYTES,
    *_TIMES,
    *_PROCESSOR,
]
_RATIOS = {
    "gloo": ("÷ gloo", lambda row: number_text(row["to_gloo"])),
    BEFORE: ("÷ before", lambda row: number_text(row["to_before"])),
}


def of(report: dict) -> str:
    filled = cells(report)
    widths = [max(len(line[i]) for line in filled) for i in range(len(filled[0]))]
    lines = [f"# {heading(report)}"]
    for line in filled:
        lines.append("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    for one in listed_comparisons(report):
        lines.append(f"{bytes_text(one['bytes'])}: {comparison_text(one)}")
    # All of it was said when it happened, and is in the JSON file and on the page.
    lines += [f"{k} FAILED: {text.partition(chr(10))[0]}" for k, text in report["errors"].items()]
    return "\n".join(lines)


def cells(report: dict) -> list[list[str]]:
    """The heading and a line per row."""
    columns = _COLUMNS
    if report["through"]:
        measured = {row["system"] for row in report["rows"]}
        ratios = [ratio for system, ratio in _RATIOS.items() if system in measured]
        columns = [*_COLUMNS_THROUGH_TORCH, *ratios]
    lines = [[text(row) for _, text in columns] for row in report["rows"]]
    return [[title for title, _ in columns], *lines]


def heading(report: dict) -> str:
    caps = ",".join(f"{cap:g}" for cap in report["flow_mbit"]) if any(report["flow_mbit"]) else ""
    parts = [
        *([f"through {report['through']}"] if report["through"] else []),
        f"nodes: {report['nodes']}, ranks per node: {report['ranks_per_node']}",
        f"NIC {report['nic_mbit']:g} Mbit/s" if report["nic_mbit"] else "NIC unshaped",
        f"flows {caps} Mbit/s" if caps else "flows uncapped",
    ]
    if report["network"]:
        parts.append(report["network"])
    if report["wire_gbit_per_second"]:
        wire = number_text(report["wire_gbit_per_second"])
        parts.append(f"wire {wire} Gbit/s over {report['wire_connections']} connections")
    return ", ".join(parts)


def listed_comparisons(report: dict) -> list[dict]:
    """Those that are not in the table anyway."""
    return [] if report["through"] else report["comparisons"]


def comparison_text(one: dict) -> str:
    parts = []
    if one["best_peer"]:
        parts.append(f"braid ÷ {one['best_peer']}, the fastest peer: {number_text(one['braid_to_best_peer'])}")
    if one["braid_to_before"]:
        parts.append(f"braid ÷ braid-before: {number_text(one['braid_to_before'])}")
    return "; ".join(parts)


def bytes_text(size: int) -> str:
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def seconds_text(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.3f} s"


def number_text(value: float | None) -> str:
    """Three digits."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:#.3g}"


def percent_text(fraction: float | None) -> str:
    return "-" if fraction is None else f"{number_text(fraction * 100)} %"
