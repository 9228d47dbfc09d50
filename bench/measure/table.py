# SPDX-License-Identifier: Apache-2.0
"""The table for a terminal, and how figures are written for people."""

from collections.abc import Callable

# A heading, and the text of a row's cell.
Column = tuple[str, Callable[[dict], str]]


def lines(columns: list[Column], rows: list[dict]) -> list[str]:
    """The first column is a name: it begins on the left."""
    cells = [[title for title, _ in columns], *([text(row) for _, text in columns] for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(columns))]
    made = []
    for name, *others in cells:
        texts = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        made.append("  ".join([name.ljust(widths[0]), *texts]))
    return made


def column(title: str, key: str, text: Callable = str) -> Column:
    """A row without that figure has a dash."""
    return title, lambda row: "-" if row[key] is None else text(row[key])


def spread_column(title: str, key: str, digits: int) -> Column:
    """The mean of `key`, and the standard deviation where several were measured."""

    def text(row: dict) -> str:
        mean, deviation = row[key], row[f"{key}_deviation"]
        if mean is None:
            return "-"
        return f"{mean:.{digits}f}" + ("" if deviation is None else f" ± {deviation:.{digits}f}")

    return title, text


def shape_text(options: dict) -> str:
    """The cluster's."""
    ranks = f", ranks per node: {options['ranks_per_node']}" if "ranks_per_node" in options else ""
    return ", ".join(
        [
            f"nodes: {options['nodes']}{ranks}",
            f"NIC {options['nic_mbit']} Mbit/s" if options["nic_mbit"] else "NIC unshaped",
            f"flows {options['flow_mbit']} Mbit/s" if options["flow_mbit"] else "flows uncapped",
        ]
    )


def bytes_text(size: int) -> str:
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def seconds_text(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.3f} s"


def number_text(value: float) -> str:
    """Three digits."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:#.3g}"


def percent_text(fraction: float) -> str:
    return f"{number_text(fraction * 100)} %"
