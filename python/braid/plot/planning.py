# SPDX-License-Identifier: Apache-2.0
"""Pictures of what `braidctl plan`, `simulate` and `advise` print with --format json."""

from __future__ import annotations

from braid.plot.page import COLOURS, Page
from braid.plot.panels import Lines, Panel, Span, Spans, number, time_unit

_COMPUTATION, _COMMUNICATION = "computation", "communication"
_FORWARD_COLOUR = "#8c959f"
_WORKER_TICKS_MAX = 12
_BANDWIDTH_TICKS = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
_LEGEND = (
    "A group has one number and colour: the backward pass of its tensors above, its messages below. Hatched: the"
    " startup of a message. Red: communication that backward does not hide."
)


def plan(step: dict, title: str) -> Page:
    """The step of a plan that braidctl has made of a trace."""
    unit, factor = time_unit(step["iteration_seconds"])
    result = f"{step['model']} planned by {step['planner']}: {number(step['iteration_seconds'] * factor)} {unit}"
    return Page(title or result, [_step(step)], [_times(step), _LEGEND])


def live(job: dict, title: str) -> Page:
    """The steps of the plans of a job that runs. ValueError: none is predicted yet."""
    panels: list[Panel] = []
    notes = []
    for i, one in enumerate(job["sets"], start=1):
        if not one["step"]:
            raise ValueError(
                f"job '{job['job']}', set {i}: no step is predicted yet: {one['steps_measured']} steps are complete,"
                f" and plan {one['plan']} was made without a cost"
            )
        panel = _step(one["step"])
        panel.title = f"set {i}: plan {one['plan']} by {one['planner']}"
        panels.append(panel)
        notes.append(f"Set {i}: {_times(one['step'])}")
    return Page(title or f"Job {job['job']}", panels, [*notes, _LEGEND])


def _times(step: dict) -> str:
    unit, factor = time_unit(step["iteration_seconds"])

    def text(name: str) -> str:
        return f"{number(step[f'{name}_seconds'] * factor)} {unit}"

    return (
        f"{sum(map(len, step['groups']))} tensors in {len(step['groups'])} groups, streams: {step['streams']};"
        f" iteration {text('iteration')} = forward {text('forward')} + backward {text('backward')} + exposed"
        f" communication {text('exposed')}"
    )


def _step(step: dict) -> Spans:
    unit, factor = time_unit(step["iteration_seconds"])
    forward = step["forward_seconds"]
    spans = [Span(_COMPUTATION, 0, forward * factor, text="forward", colour=_FORWARD_COLOUR)] if forward else []

    def place(seconds: float) -> float:
        return (forward + seconds) * factor

    begin = 0.0
    for group, end in enumerate(step["ready_seconds"]):
        colour = COLOURS[group % len(COLOURS)]
        spans.append(
            Span(_COMPUTATION, place(begin), place(end), text=str(group + 1), colour=colour, opacity=0.45)
        )
        begin = end
    for one in step["units"]:
        group, start = one["group"], one["start_seconds"]
        text = f"{group + 1}.{one['piece'] + 1}" if step["pieces"][group] > 1 else str(group + 1)
        startup_end = min(start + one["startup_seconds"], one["end_seconds"])
        spans.append(
            Span(_COMMUNICATION, place(start), place(one["end_seconds"]), text=text,
                 colour=COLOURS[group % len(COLOURS)], hatched_until=place(startup_end))
        )  # fmt: skip
    return Spans(
        title="", x_title=f"time since the step began ({unit})", lanes=[_COMPUTATION, _COMMUNICATION], spans=spans,
        end=step["iteration_seconds"] * factor,
        shaded_from=place(step["backward_seconds"]) if step["exposed_seconds"] > 0 else None,
    )  # fmt: skip


def simulate(rows: list[dict], title: str) -> Page:
    """Iteration time and speed-up over numbers of workers, a line for each planner and update method."""
    unit, factor = time_unit(max(row["iteration_seconds"] for row in rows))
    has_one_planner = len({row["planner"] for row in rows}) == 1
    lines: dict[str, list[dict]] = {}
    for row in rows:
        parts = [row["planner"], row["update"]] if "update" in row else [row["planner"]]
        lines.setdefault(parts[-1] if has_one_planner else ", ".join(parts), []).append(row)
    workers = sorted({row["workers"] for row in rows})
    ticks = workers[:: -(-len(workers) // _WORKER_TICKS_MAX)]

    def panel(text: str, key: str, times: float, series: dict, reference: str = "") -> Lines:
        series |= {name: [(row["workers"], row[key] * times) for row in some] for name, some in lines.items()}
        return Lines(text, "workers", series=series, reference=reference, x_ticks=ticks, may_be_logarithmic=True)

    ideal = "as many as workers"
    panels: list[Panel] = [
        panel(f"iteration time ({unit})", "iteration_seconds", factor, {}),
        panel("speed-up", "speedup", 1, {ideal: [(count, count) for count in workers]}, ideal),
    ]
    notes = ["Speed-up: workers · iteration of one worker / iteration."]
    return Page(title or "Planners over workers", panels, notes, columns=2, panel_inches=3.4)


def advise(advice: dict, title: str) -> Page:
    """The step over the bandwidth of a node, a line for each codec."""
    sweep = advice["sweep"]
    bandwidths = [bits / 1e9 for bits in sweep["bits_per_second"]]
    unit, factor = time_unit(max(map(max, sweep["step_seconds"].values())))
    series = {
        codec: list(zip(bandwidths, [one * factor for one in seconds]))
        for codec, seconds in sweep["step_seconds"].items()
    }
    panel = Lines(
        f"step ({unit})", "bandwidth of a node (Gbit/s)", series=series, reference=next(iter(series)),
        x_ticks=_BANDWIDTH_TICKS, may_be_logarithmic=True,
        limit=(advice["compute_seconds"] * factor, "forward and backward alone"),
    )  # fmt: skip
    measured = advice["wire_bits_per_second"] / 1e9
    notes = [f"{advice['nodes']} nodes. Measured: {number(measured)} Gbit/s, startups as there.", advice["reason"]]
    return Page(title or f"{advice['model']} with codecs, over bandwidth", [panel], notes, panel_inches=4.4)
