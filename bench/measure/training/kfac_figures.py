# SPDX-License-Identifier: Apache-2.0
"""From what the ranks have measured of steps with K-FAC to what is reported. Pure functions."""

import statistics

from ..group import slowest

FIRST, LATE = "d", "mpd"
MODES = (FIRST, LATE, "spd", "dp")
ALONE = "alone"
# Inverses in each step, and in none.
PHASES = ("inverses", "factors")


def rows(ranks: list[dict]) -> list[dict]:
    """A row for each mode, from what the ranks answered: by phase and mode the seconds of all steps."""
    made = []
    for mode in (*MODES, ALONE):
        seconds = {phase: slowest([rank[phase] for rank in ranks], mode) for phase in PHASES}
        medians = {f"{phase}_seconds": statistics.median(some) for phase, some in seconds.items()}
        made.append({"mode": mode, **medians, "steps": seconds})
    by_mode = {row["mode"]: row for row in made}
    late, alone = (by_mode[mode]["factors_seconds"] for mode in (LATE, ALONE))
    for row in made:
        is_alone = row["mode"] == ALONE
        row["to_first"] = None if is_alone else row["inverses_seconds"] / by_mode[FIRST]["inverses_seconds"]
        row["overlap"] = None
        # dp sends no factors at all.
        if row["mode"] == "spd" and late > alone:
            row["overlap"] = (late - row["factors_seconds"]) / (late - alone)
    return made
