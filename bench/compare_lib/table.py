# SPDX-License-Identifier: Apache-2.0
"""The report for a terminal, and how figures are written for people."""

_HEADING = ("bytes", "system", "median", "p99", "bus Gbit/s", "of wire", "of NIC", "CPU s/GB", "machine s/GB")


def of(report: dict) -> str:
    filled = cells(report)
    widths = [max(len(line[i]) for line in filled) for i in range(len(_HEADING))]
    lines = [f"# {heading(report)}"]
    for line in filled:
        lines.append("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    for one in report["comparisons"]:
        lines.append(f"{bytes_text(one['bytes'])}: {comparison_text(one)}")
    # All of it was said when it happened, and is in the JSON file and on the page.
    lines += [f"{k} FAILED: {text.partition(chr(10))[0]}" for k, text in report["errors"].items()]
    return "\n".join(lines)


def cells(report: dict) -> list[list[str]]:
    """The heading and a line per row."""
    found = [list(_HEADING)]
    for row in report["rows"]:
        found.append(
            [
                bytes_text(row["bytes"]),
                row["system"],
                seconds_text(row["median_seconds"]),
                seconds_text(row["p99_seconds"]),
                number_text(row["bus_gbit_per_second"]),
                percent_text(row["line_fraction"]),
                percent_text(row["nic_fraction"]),
                number_text(row["cpu_seconds_per_gigabyte"]),
                number_text(row["machine_seconds_per_gigabyte"]),
            ]
        )
    return found


def heading(report: dict) -> str:
    caps = ",".join(f"{cap:g}" for cap in report["flow_mbit"]) if any(report["flow_mbit"]) else ""
    parts = [
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


def comparison_text(one: dict) -> str:
    return f"braid ÷ {one['best_peer']}, the fastest peer: {number_text(one['braid_to_best_peer'])}"


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
