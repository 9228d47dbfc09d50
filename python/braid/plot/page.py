# SPDX-License-Identifier: Apache-2.0
"""A picture: a heading, panels in rows, a legend."""

from __future__ import annotations

import dataclasses
import io
import math
import os
import pathlib
import re
import textwrap

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import offset_copy

from braid.plot.panels import INK, MUTED, REFERENCE, Lines, Panel

# Okabe and Ito's palette without its yellow, which white swallows, and with two more: people who see few colours can
# tell them apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7b4fa3", "#8c6d31", "#5f6b73")
_STYLE = {
    "font.size": 10,
    "font.family": "DejaVu Sans",
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#d8dee4",
    "svg.fonttype": "none",  # texts stay texts
    "svg.hashsalt": "braid",  # the same picture has the same bytes
}
_MARGIN, _TITLE_INCHES, _LINE_INCHES = 0.15, 0.42, 0.21
_NOTE_LETTERS_PER_INCH = 12
_LEGEND_LETTER_INCHES, _LEGEND_MARK_INCHES = 0.085, 0.55
_PIXELS_PER_INCH = 150  # of a PNG
_AXIS_POINTS = 34  # of the labels and the title below an axis


@dataclasses.dataclass
class Page:
    """A name has one colour in all panels, and there is one legend; each panel has its own colours and legend if there
    are more names than colours."""

    title: str
    panels: list[Panel]
    notes: list[str] = dataclasses.field(default_factory=list)
    columns: int = 1
    panel_inches: tuple[float, float] = (8.5, 3.2)  # with its titles

    def save(self, path: str | os.PathLike) -> None:
        """As SVG, PNG or what else the name ends with that matplotlib knows. OSError: it cannot be written."""
        with matplotlib.rc_context(_STYLE):
            figure = self._draw()
            if not str(path).endswith(".svg"):
                figure.savefig(path, dpi=_PIXELS_PER_INCH)
                return
            drawn = io.StringIO()
            figure.savefig(drawn, format="svg", metadata={"Date": None})
        # A path on one line, and no blanks at a line's end: documents keep these files.
        joined = re.sub(r" *\n(?=[A-Za-z])", " ", drawn.getvalue())
        pathlib.Path(path).write_text(re.sub(r" +\n", "\n", joined), encoding="utf-8")

    def _draw(self) -> Figure:
        rows = math.ceil(len(self.panels) / self.columns)
        width = self.columns * self.panel_inches[0]
        notes = [line for note in self.notes for line in textwrap.wrap(note, int(width * _NOTE_LETTERS_PER_INCH))]
        colours, marks = _legend(self.panels)
        has_one_legend = len(marks) <= len(COLOURS) + 1  # a reference has no colour of these
        longest = max(map(len, colours), default=0)
        legend_columns = max(1, int(width / (_LEGEND_MARK_INCHES + _LEGEND_LETTER_INCHES * longest)))
        legend_rows = math.ceil(len(marks) / legend_columns) if has_one_legend and len(marks) > 1 else 0
        legend_inches = 0.1 + 0.24 * legend_rows if legend_rows else 0.0
        heading_inches = _MARGIN + _TITLE_INCHES + _LINE_INCHES * len(notes)
        height = heading_inches + rows * self.panel_inches[1] + legend_inches
        figure = Figure(figsize=(width, height))
        grid = figure.subplots(rows, self.columns, squeeze=False).flat
        for axes in grid[len(self.panels) :]:
            axes.remove()
        for panel, axes in zip(self.panels, grid):
            if has_one_legend:
                panel.draw(axes, colours)
                continue
            own_colours, own_marks = _legend([panel])
            panel.draw(axes, own_colours)
            below = offset_copy(axes.transAxes, figure, y=-_AXIS_POINTS, units="points")
            axes.legend(
                handles=own_marks, loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=below, frameon=False, ncol=2,
                fontsize="small", borderaxespad=0,
            )  # fmt: skip
        left, y = _MARGIN / width, height - _MARGIN
        figure.text(left, y / height, self.title, fontsize=14, fontweight="bold", va="top")
        for i, note in enumerate(notes):
            at = y - _TITLE_INCHES + 0.1 - _LINE_INCHES * i
            figure.text(left, at / height, note, color=MUTED, va="top")
        if legend_inches:
            figure.legend(
                handles=marks, loc="lower left", bbox_to_anchor=(left, 0.03 / height), ncol=legend_columns,
                frameon=False, borderaxespad=0, borderpad=0,
            )  # fmt: skip
        figure.tight_layout(rect=(0, legend_inches / height, 1, 1 - heading_inches / height))
        return figure


def _legend(panels: list[Panel]) -> tuple[dict[str, str], list]:
    """The colour of each name, and the legend's entries."""
    references = {panel.reference for panel in panels if isinstance(panel, Lines)}
    names = list(dict.fromkeys(name for panel in panels for name in panel.names()))
    plain = [name for name in names if name not in references]
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(plain)}
    colours |= {name: REFERENCE for name in names if name in references}
    marks = [
        Line2D([], [], color=colour, linestyle=":", label=name)
        if name in references
        else Patch(color=colour, label=name)
        for name, colour in colours.items()
    ]
    return colours, marks
