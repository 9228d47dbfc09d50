# SPDX-License-Identifier: Apache-2.0
"""Pictures of what bench/compare and bench/steps --timeline write with --json."""

from __future__ import annotations

from braid.plot.page import Page
from braid.plot.panels import Bars, Lines, Panel, Span, Spans, number, time_unit

_LANES = ["trainer", "gradients handed\nto the daemon", "groups of gradients,\nuntil their result is here"]
_MOMENT_SHARE = 1 / 400  # of the time axis: a moment that is to be seen
_METRICS = (
    ("bus_gbit_per_second", "bus bandwidth (Gbit/s)"),
    ("median_seconds", "time of one operation, median"),
    ("cpu_seconds_per_gigabyte", "processor time of a node's processes (s/GB)"),
    ("machine_seconds_per_gigabyte", "processor time of the whole node (s/GB)"),
)


def compare(report: dict, title: str) -> Page:
    """Bars for each system: by size, or through torch by collective, a row of panels for each size and dtype."""
    rows = report["rows"]
    if not rows:
        raise ValueError("no system has been measured: there is nothing to draw")
    systems = list(dict.fromkeys(row["system"] for row in rows))
    options = report["options"]
    by_torch = bool(options["through"])
    panels: list[Panel] = []
    for case in dict.fromkeys((row["dtype"], row["bytes"]) if by_torch else None for row in rows):
        some = [row for row in rows if case is None or case == (row["dtype"], row["bytes"])]
        prefix = f"{case[0]}, {_size(case[1])}: " if case else ""
        for key, text in _METRICS:
            told = [row for row in some if row[key] is not None]
            if told and not (by_torch and key == "bus_gbit_per_second"):
                panels.append(_bars(told, systems, key, prefix + text, by_torch))
    wire = report["wire_gbit_per_second"]
    if wire and not by_torch:
        panels[0].limit = (wire, f"the wire: {number(wire)} Gbit/s")
    what = "Collectives through torch" if by_torch else "All-reduce"
    notes = [f"{options['nodes']} nodes, ranks of each: {options['ranks_per_node']}", report["network"]]
    heading = title or f"{what}: {', '.join(systems)}"
    return Page(heading, panels, list(filter(None, notes)), panel_inches=2.7)


def _bars(rows: list[dict], systems: list[str], key: str, title: str, by_torch: bool) -> Bars:
    factor = 1.0
    if key == "median_seconds":
        unit, factor = time_unit(max(row[key] for row in rows))
        title += f" ({unit})"
    by = "collective" if by_torch else "bytes"
    groups = list(dict.fromkeys(row[by] for row in rows))
    values = {(row[by], row["system"]): row[key] * factor for row in rows}
    series = {system: [values.get((group, system)) for group in groups] for system in systems}
    names = [str(group).replace("_", "\n") if by_torch else _size(group) for group in groups]
    return Bars(title, groups=names, series=series)


def _size(count: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= factor:
            return f"{count / factor:g} {unit}"
    return f"{count} B"


def timeline(report: dict, title: str) -> Page:
    """When the steps of each system compute on rank 0, and when its gradients travel. One time axis for all."""
    timelines = report["timelines"]
    if not timelines:
        raise ValueError("no system has been measured: there is nothing to draw (bench/steps --timeline)")
    bounds = [(one["computing"][0][0][1], one["computing"][-1][-1][2]) for one in timelines.values()]  # ns
    end = max(until - begin for begin, until in bounds)
    panels: list[Panel] = [
        Spans(system, "ms", lanes=_LANES, spans=_spans(part, *one, end * _MOMENT_SHARE), end=end / 1e6)
        for (system, part), one in zip(timelines.items(), bounds)
    ]
    took = {system: (until - begin) / 1e9 for system, (begin, until) in zip(timelines, bounds)}
    fast, slow = min(took, key=took.__getitem__), max(took, key=took.__getitem__)
    steps = len(timelines[fast]["computing"])
    heading = title or f"{steps} steps take {number(took[fast])} s by {fast}, {number(took[slow])} s by {slow}"
    notes = ["When they compute, and when their gradients travel", f"{report['options']['nodes']} nodes, rank 0"]
    return Page(heading, panels, notes, panel_inches=2.6)


def _spans(part: dict, first: int, last: int, moment: float) -> list[Span]:
    """Those of the steps between the two moments. Moments too near to the one before to be seen are left out."""
    all_spans = [(_LANES[0], name, begin, end, name) for step in part["computing"] for name, begin, end in step]
    latest = -moment
    for at in sorted(part["gradients"]):
        if at - latest >= moment:
            all_spans.append((_LANES[1], "gradient", at, at + moment, ""))
            latest = at
    all_spans += [(_LANES[2], "group", begin, end, "") for begin, end, _ in part["operations"]]
    return [
        Span(lane, (max(begin, first) - first) / 1e6, (min(end, last) - first) / 1e6, name, text)
        for lane, name, begin, end, text in all_spans
        if begin <= last and end >= first
    ]
