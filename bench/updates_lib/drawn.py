# SPDX-License-Identifier: Apache-2.0
"""The picture of bench/updates timeline, for braidctl draw (docs/figures.md). Pure functions."""

LANES = ["trainer", "gradients handed to the daemon", "groups of gradients, until their result is here"]
_TRAINER, _GRADIENTS, _OPERATIONS = range(len(LANES))
_GRADIENT, _OPERATION = "gradient", "group"
_WIDTH, _HEIGHT = 900, 210
# Of the time axis: a moment that is to be seen.
_MOMENT_SHARE = 1 / 600


def figure_of(parts: list[dict], heading: str) -> dict:
    """Each part has a system and what its rank 0 has answered. All have one time axis."""
    end = max(_end(part) - _begin(part) for part in parts) / 1e6
    return {
        "title": "When a step computes, and when its gradients travel",
        "notes": [heading],
        "panel_width": _WIDTH,
        "panel_height": _HEIGHT,
        "panels": [_panel(part, end) for part in parts],
    }


def _begin(part: dict) -> int:
    return part["computing"][0][0][1]


def _end(part: dict) -> int:
    return part["computing"][-1][-1][2]


def _panel(part: dict, end: float) -> dict:
    first, last = _begin(part), _end(part)

    def span(lane: int, begin: int, until: int, text: str = "") -> dict | None:
        """None: it is before or after the steps that are shown."""
        if until < first or begin > last:
            return None
        made = {"lane": lane, "begin": (max(begin, first) - first) / 1e6, "end": (min(until, last) - first) / 1e6}
        return {**made, "text": text} if text else made

    series: dict[str, list] = {}
    for of_step in part["computing"]:
        for name, begin, until in of_step:
            series.setdefault(name, []).append(span(_TRAINER, begin, until, name))
    moment = round(1e6 * end * _MOMENT_SHARE)
    series[_GRADIENT] = [span(_GRADIENTS, at, at + moment) for at in _apart(part["gradients"], moment)]
    series[_OPERATION] = [span(_OPERATIONS, begin, until) for begin, until, _ in part["operations"]]
    kept = {name: [one for one in spans if one is not None] for name, spans in series.items()}
    return {
        "title": part["system"],
        "kind": "spans",
        "x_title": "ms",
        "x_end": end,
        "groups": LANES,
        "series": [{"name": name, "spans": spans} for name, spans in kept.items() if spans],
    }


def _apart(moments: list[int], least: int) -> list[int]:
    """Moments that are too near to their neighbour to be seen are left out."""
    kept: list[int] = []
    for moment in sorted(moments):
        if not kept or moment - kept[-1] >= least:
            kept.append(moment)
    return kept
