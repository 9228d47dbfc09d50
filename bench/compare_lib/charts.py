# SPDX-License-Identifier: Apache-2.0
"""The charts of the page, as `braidctl draw` takes them: bars by size and system."""

from collections.abc import Callable

from .table import bytes_text

# Scales the values of one panel for its axis; the unit's name, and by what they are multiplied.
Unit = Callable[[float], tuple[str, float]]


def seconds_unit(largest: float) -> tuple[str, float]:
    if largest < 1e-3:
        return "µs", 1e6
    return ("ms", 1e3) if largest < 1 else ("s", 1.0)


def per_gigabyte(_: float) -> tuple[str, float]:
    return "s/GB", 1.0


def bandwidth(rows: list[dict], systems: list[str], limit: tuple[float, str] | None) -> dict:
    """A group of bars per size; `limit` is a line with its label."""
    sizes = list(dict.fromkeys(row["bytes"] for row in rows))
    panel = _panel(rows, systems, sizes, "bus_gbit_per_second", lambda _: ("Gbit/s", 1.0))
    if limit:
        panel["limit"] = {"value": limit[0], "text": limit[1]}
    return {"panel_width": 740, "panel_height": 260, "panels": [panel]}


def by_size(rows: list[dict], systems: list[str], sizes: list[int], key: str, unit: Unit) -> dict:
    """A panel per size, each on a scale of its own."""
    panels = [_panel(rows, systems, [size], key, unit) for size in sizes]
    return {"columns": 3, "panel_width": 200, "panel_height": 140, "panels": panels}


def by_collective(rows: list[dict], systems: list[str], key: str, unit: Unit) -> dict:
    """A panel per size and dtype, with a group of bars per collective."""
    panels = []
    for size, dtype in dict.fromkeys((row["bytes"], row["dtype"]) for row in rows):
        some = [row for row in rows if (row["bytes"], row["dtype"]) == (size, dtype)]
        names = list(dict.fromkeys(row["collective"] for row in some))
        panel = _bars(some, systems, "collective", dict(zip(names, names, strict=True)), key, unit)
        panel["title"] = f"{dtype}, {bytes_text(size)}: {panel['title']}"
        panels.append(panel)
    return {"columns": 1, "panel_width": 740, "panel_height": 200, "panels": panels}


def _panel(rows: list[dict], systems: list[str], sizes: list[int], key: str, unit: Unit) -> dict:
    some = [row for row in rows if row["bytes"] in sizes]
    return _bars(some, systems, "bytes", {size: bytes_text(size) for size in sizes}, key, unit)


def _bars(rows: list[dict], systems: list[str], by: str, groups: dict, key: str, unit: Unit) -> dict:
    """`groups`: the label of each value of the field `by`."""
    values = {(row[by], row["system"]): row[key] for row in rows}
    name, factor = unit(max(values.values()))

    def scaled(group, system: str) -> float | None:
        value = values.get((group, system))
        return None if value is None else value * factor

    return {
        "title": name,
        "kind": "bars",
        "groups": list(groups.values()),
        "series": [{"name": system, "values": [scaled(group, system) for group in groups]} for system in systems],
    }
