# SPDX-License-Identifier: Apache-2.0
"""The picture of a step with K-FAC: what each rank computes, and what travels meanwhile, from `braidctl trace`."""

from collections.abc import Iterator
from typing import NamedTuple

from braid.plot.page import Page
from braid.plot.panels import Span, Spans

FACTORS, INVERSES, WAITS = "factors", "inverses", "waits for inverses of others"
FACTORS_TRAVEL, INVERSES_TRAVEL, GRADIENTS_TRAVEL = "factors travel", "inverses travel", "gradients travel"
NETWORK = "network"
LARGE_BYTES = 10_000  # Ranks agree on costs, and count steps, in fewer.


class Seen(NamedTuple):
    """A span of the trace: what it is on, and when it was, in ms after the step's begin."""

    node: str
    track: str
    name: str
    begin: float
    end: float
    arguments: dict


def spans_of(step: dict) -> Iterator[Seen]:
    """Those of the step, cut off where it begins and ends."""
    events = step["trace"]["traceEvents"]
    first_ns = step["trace"]["otherData"]["begin_ns"]
    nodes = {one["pid"]: one["args"]["name"] for one in events if one["name"] == "process_name"}
    tracks = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["name"] == "thread_name"}
    length = (step["end_ns"] - step["begin_ns"]) / 1e6
    for one in events:
        if one["ph"] != "X":
            continue
        begin = (first_ns - step["begin_ns"]) / 1e6 + one["ts"] / 1e3
        end = begin + one["dur"] / 1e3
        if begin < length and end > 0:
            track = tracks[one["pid"], one["tid"]].partition(" (")[0]
            yield Seen(nodes[one["pid"]], track, one["name"], max(0, begin), min(end, length), one["args"])


def lane_of(rank: int) -> str:
    return f"rank {rank}"


def computed(seen: Seen) -> Span | None:
    rank, _, work = seen.track.removeprefix("rank ").partition(": ")
    if work == "factors":
        return Span(lane_of(int(rank)), seen.begin, seen.end, FACTORS)
    if work != "inverses":
        return None
    if seen.arguments["waits"]:
        return Span(lane_of(int(rank)), seen.begin, seen.end, WAITS, opacity=0.45)
    return Span(lane_of(int(rank)), seen.begin, seen.end, INVERSES, seen.name)


def travelled(seen: Seen) -> Span | None:
    if seen.name.startswith("kfac"):
        name = FACTORS_TRAVEL
    elif "plan" in seen.arguments:
        name = GRADIENTS_TRAVEL
    elif seen.arguments["bytes"] >= LARGE_BYTES:
        name = INVERSES_TRAVEL
    else:
        return None
    return Span(NETWORK, seen.begin, seen.end, name)


def panel_of(title: str, step: dict, end: float) -> Spans:
    """The network is the first node's."""
    all_seen = sorted(spans_of(step), key=lambda seen: seen.begin)
    waits = {(seen.node, seen.track, seen.begin): seen.end for seen in all_seen if seen.name == "waits for other nodes"}
    first = step["trace"]["otherData"]["nodes"][0]["node"]
    spans, ranks = [], set()
    for seen in all_seen:
        if span := computed(seen):
            spans.append(span)
            ranks.add(int(span.lane.removeprefix("rank ")))
        elif seen.node == f"node {first}" and seen.track == "operations" and "bytes" in seen.arguments:
            seen = seen._replace(begin=waits.get((seen.node, seen.track, seen.begin), seen.begin))
            if span := travelled(seen):
                spans.append(span)
    return Spans(title, "ms", lanes=[*map(lane_of, sorted(ranks)), NETWORK], spans=spans, end=end)


def page_of(steps: dict[str, dict], note: str) -> Page:
    """`steps`: by title, what kfac_rank.py has written."""
    end = max((step["end_ns"] - step["begin_ns"]) / 1e6 for step in steps.values())
    panels = [panel_of(title, step, end) for title, step in steps.items()]
    took = {panel.title: max(span.end for span in panel.spans if span.lane != NETWORK) for panel in panels}
    result = ", ".join(f"{length:.0f} ms by {title}" for title, length in took.items())
    return Page(f"Factors and inverses take {result}", panels, [note], panel_inches=3.2)
