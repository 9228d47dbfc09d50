# SPDX-License-Identifier: Apache-2.0
"""What a panel of a picture shows: bars, lines, or spans of time."""

from __future__ import annotations

import dataclasses
import math

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

INK, MUTED, REFERENCE = "#24292f", "#57606a", "#57606a"
_LOGARITHMIC_FROM = 20  # the largest value to the smallest one
_MARKED_POINTS_MAX = 40  # of a line
_LETTER_INCHES = 0.085  # about, and rather more than less
_LANE_ROOM = 0.12  # of a lane, above and below its spans


@dataclasses.dataclass
class Panel:
    title: str  # what is drawn upwards, with its unit
    x_title: str = ""
    note: str = ""  # behind the title
    limit: tuple[float, str] | None = None  # a line across, and what it is

    def names(self) -> list[str]:
        """What has a colour of its own, in the order of the legend."""
        raise NotImplementedError

    def draw(self, axes: Axes, colours: dict[str, str]) -> None:
        axes.set_title(f"{self.title}, {self.note}" if self.note else self.title)
        if self.x_title:
            axes.set_xlabel(self.x_title)
        if self.limit:
            value, text = self.limit
            axes.axhline(value, color=MUTED, linestyle="--", linewidth=1)
            place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
            axes.annotate(text, (1, value), xytext=(0, 3), ha="right", color=MUTED, fontsize="small", **place)


@dataclasses.dataclass
class Bars(Panel):
    """A group of bars for each name in `groups`; None: no bar."""

    groups: list[str] = dataclasses.field(default_factory=list)
    series: dict[str, list[float | None]] = dataclasses.field(default_factory=dict)
    is_stacked: bool = False

    def names(self) -> list[str]:
        return list(self.series)

    def draw(self, axes: Axes, colours: dict[str, str]) -> None:
        width = 0.6 if self.is_stacked else 0.8 / len(self.series)
        tops = [0.0] * len(self.groups)
        for i, (name, values) in enumerate(self.series.items()):
            shift = 0 if self.is_stacked else (i - (len(self.series) - 1) / 2) * width
            told = [place for place, value in enumerate(values) if value is not None]
            bars = axes.bar(
                [place + shift for place in told], [values[place] for place in told], width * 0.94,
                bottom=[tops[place] for place in told] if self.is_stacked else 0, color=colours[name],
            )  # fmt: skip
            inside = {"label_type": "center", "color": "white"} if self.is_stacked else {"padding": 2}
            axes.bar_label(bars, [number(values[place]) for place in told], fontsize="small", **inside)
            if self.is_stacked:
                tops = [top + (value or 0) for top, value in zip(tops, values)]
        axes.set_xticks(range(len(self.groups)), self.groups)
        axes.grid(visible=False, axis="x")
        if self.is_stacked:
            for place, top in enumerate(tops):
                axes.annotate(number(top), (place, top), xytext=(0, 3), textcoords="offset points", ha="center")
        values = [value for values in self.series.values() for value in values if value]
        if values and not self.is_stacked and max(values) > _LOGARITHMIC_FROM * min(values):
            _make_logarithmic(axes, "y")
        axes.margins(y=0.15)
        super().draw(axes, colours)


@dataclasses.dataclass
class Lines(Panel):
    series: dict[str, list[tuple[float, float]]] = dataclasses.field(default_factory=dict)
    reference: str = ""  # the series that the others are held against: dotted
    x_ticks: list[float] = dataclasses.field(default_factory=list)  # some: the axis is logarithmic
    may_be_logarithmic: bool = False  # upwards, where the values span much

    def names(self) -> list[str]:
        return list(self.series)

    def draw(self, axes: Axes, colours: dict[str, str]) -> None:
        for name, points in self.series.items():
            marks = "o" if len(points) <= _MARKED_POINTS_MAX and name != self.reference else None
            axes.plot(
                [x for x, _ in points], [y for _, y in points], marker=marks, markersize=4, color=colours[name],
                linestyle=":" if name == self.reference else "-",
            )  # fmt: skip
        if self.x_ticks:
            _make_logarithmic(axes, "x")
            axes.set_xticks(self.x_ticks, [f"{tick:g}" for tick in self.x_ticks])
        own = [y for name, points in self.series.items() if name != self.reference for _, y in points]
        if self.may_be_logarithmic and own and 0 < min(own) < max(own) / 6:
            _make_logarithmic(axes, "y")
        elif own and min(own) >= 0:
            highest = max([*own, self.limit[0] if self.limit else 0.0])
            axes.set_ylim(0, highest * 1.08 if highest > 0 else None)
        super().draw(axes, colours)


@dataclasses.dataclass
class Span:
    """From `begin` to `end`, in the lane of this name."""

    lane: str
    begin: float
    end: float
    name: str = ""  # in the legend; empty: `colour` says what it looks like
    text: str = ""  # within it, where there is room
    colour: str = ""
    opacity: float = 1.0
    hatched_until: float | None = None


@dataclasses.dataclass
class Spans(Panel):
    """Lanes from top to bottom. Spans of a lane that overlap are below each other."""

    lanes: list[str] = dataclasses.field(default_factory=list)
    spans: list[Span] = dataclasses.field(default_factory=list)
    end: float = 0.0  # the axis goes so far at least
    shaded_from: float | None = None

    def names(self) -> list[str]:
        return list(dict.fromkeys(span.name for span in self.spans if span.name))

    def draw(self, axes: Axes, colours: dict[str, str]) -> None:
        end = max([self.end, *(span.end for span in self.spans)])
        axes.set_xlim(0, end or 1)
        axes.set_ylim(len(self.lanes), 0)
        axes.set_yticks([i + 0.5 for i in range(len(self.lanes))], self.lanes)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        if self.shaded_from is not None:
            axes.axvspan(self.shaded_from, end, color="#cf222e", alpha=0.08, linewidth=0)
        inches = axes.get_window_extent().width / axes.figure.dpi / (end or 1)
        for i, lane in enumerate(self.lanes):
            own = [span for span in self.spans if span.lane == lane]
            rows = rows_of([(span.begin, span.end) for span in own])
            height = (1 - 2 * _LANE_ROOM) / (max(rows, default=0) + 1)
            for span, row in zip(own, rows):
                self._draw_span(axes, span, i + _LANE_ROOM + row * height, height, colours, inches)
        super().draw(axes, colours)

    @staticmethod
    def _draw_span(axes: Axes, span: Span, top: float, height: float, colours: dict[str, str], inches: float) -> None:
        colour = span.colour or colours[span.name]
        where = {"left": span.begin, "height": 0.96 * height, "align": "edge", "linewidth": 0}
        axes.barh(top, span.end - span.begin, color=colour, alpha=span.opacity, **where)
        begin = span.begin
        if span.hatched_until is not None:
            begin = span.hatched_until
            axes.barh(top, begin - span.begin, color="none", hatch="/////", edgecolor="white", **where)
        if span.text and (span.end - begin) * inches > _LETTER_INCHES * (len(span.text) + 1):
            ink = INK if span.opacity < 1 else "white"
            middle = {"ha": "center", "va": "center", "color": ink, "fontsize": "small", "clip_on": True}
            axes.text((begin + span.end) / 2, top + 0.48 * height, span.text, **middle)


def rows_of(spans: list[tuple[float, float]]) -> list[int]:
    """The row of each span: the first one that is free when it begins."""
    ends: list[float] = []
    rows = [0] * len(spans)
    for i in sorted(range(len(spans)), key=lambda i: spans[i]):
        begin, end = spans[i]
        rows[i] = next((row for row, until in enumerate(ends) if until <= begin), len(ends))
        ends[rows[i] : rows[i] + 1] = [end]
    return rows


def number(value: float) -> str:
    """With three digits, and without an exponent."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}" if abs(value) < 100 else f"{value:.0f}"


def time_unit(seconds: float) -> tuple[str, float]:
    """In which unit times up to `seconds` are best read, and how many make a second."""
    if seconds < 1e-3:
        return "µs", 1e6
    return ("ms", 1e3) if seconds < 10 else ("s", 1.0)


def _make_logarithmic(axes: Axes, which: str) -> None:
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
