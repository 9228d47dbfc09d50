# SPDX-License-Identifier: Apache-2.0
"""A picture of what bench/train writes with --json: the loss over steps, and over seconds."""

from __future__ import annotations

from braid.plot.page import Page
from braid.plot.panels import Lines, number


def trainings(report: dict, title: str) -> Page:
    """A line for each system: means over the seeds."""
    courses = report["courses"]
    if not courses:
        raise ValueError("no system has been trained: there is nothing to draw")
    names = _short_names(list(courses))
    panels = [
        Lines("loss", x_title, series={names[system]: [(point[x], point["loss"]) for point in course]
                                       for system, course in courses.items()})
        for x, x_title in (("steps", "steps"), ("seconds", "seconds of training"))
    ]  # fmt: skip
    options = report["options"]
    notes = [f"{options['dataset']}, {options['nodes']} nodes, means of {options['seeds']} seeds"]
    best = min(courses, key=lambda system: courses[system][-1]["loss"])
    steps, loss = courses[best][-1]["steps"], courses[best][-1]["loss"]
    result = f"{names[best]} has the lowest loss after {steps} steps: {number(loss)}"
    return Page(title or result, panels, notes, 2, 3.4)


def _short_names(systems: list[str]) -> dict[str, str]:
    """A system without what all of its kind have: kfac:mode=spd@learning-rate=0.1 is kfac:mode=spd, if the others have
    that rate, too."""
    parts = {system: set(system.partition(":")[2].replace("@", ",").split(",")) for system in systems}
    made = {}
    for system in systems:
        kind = _kind(system)
        shared = set.intersection(*(parts[other] for other in systems if _kind(other) == kind))
        own = [part for part in system.partition(":")[2].replace("@", ",").split(",") if part not in shared]
        made[system] = ":".join([kind, ",".join(own)]) if own else kind
    return made


def _kind(system: str) -> str:
    return system.partition(":")[0].partition("@")[0]
