# SPDX-License-Identifier: Apache-2.0
"""A picture: a heading, panels in rows, legends."""

from __future__ import annotations

import dataclasses
import io
import math
import os
import pathlib
import re
import textwrap

import matplotlib
from matplotlib.axes import Axes
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
# On the usual pages for repositories a document has 830 pixels of 1/96 inch: letters keep their size there.
_WIDTH_INCHES = 8.6
_MARGIN, _TITLE_INCHES, _LINE_INCHES = 0.15, 0.32, 0.21
_NOTE_LETTERS_PER_INCH, _TITLE_LETTERS_PER_INCH = 12, 8.3
_LEGEND_LETTER_INCHES, _LEGEND_MARK_INCHES, _LEGEND_LINE_INCHES = 0.07, 0.55, 0.19
_PIXELS_PER_INCH = 150  # of a PNG
_AXIS_POINTS = 34  # of the labels and the title below an axis


@dataclasses.dataclass
class Page:
    """Each panel has a legend; panels that all have the same names have one together. A name has one colour in all
    panels, unless there are more names than colours."""

    title: str  # what one sees in it
    panels: list[Panel]
    notes: list[str] = dataclasses.field(default_factory=list)
    columns: int = 1
    panel_inches: float = 3.2  # the height of each, with its titles and without its legend

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
        titles = textwrap.wrap(self.title, int(_WIDTH_INCHES * _TITLE_LETTERS_PER_INCH), break_on_hyphens=False)
        notes = [
            line for note in self.notes for line in textwrap.wrap(note, int(_WIDTH_INCHES * _NOTE_LETTERS_PER_INCH))
        ]
        has_one_legend = all(panel.names() == self.panels[0].names() for panel in self.panels)
        colours, marks = _legend(self.panels)
        has_own_colours = len(marks) > len(COLOURS) + 1  # a reference has no colour of these
        legends = [_legend([panel]) for panel in self.panels]
        below = _LEGEND_LINE_INCHES * self._legend_lines(marks, 1) if has_one_legend and len(marks) > 1 else 0.0
        heights = [self.panel_inches] * math.ceil(len(self.panels) / self.columns)
        for i, (_, own_marks) in enumerate(legends):
            lines = 0 if has_one_legend else self._legend_lines(own_marks, self.columns)
            row = i // self.columns
            heights[row] = max(heights[row], self.panel_inches + _LEGEND_LINE_INCHES * lines)
        heading = _MARGIN + _TITLE_INCHES * len(titles) + _LINE_INCHES * len(notes)
        height = heading + sum(heights) + below
        figure = Figure(figsize=(_WIDTH_INCHES, height))
        grid = figure.subplots(len(heights), self.columns, squeeze=False, height_ratios=heights).flat
        for axes in grid[len(self.panels) :]:
            axes.remove()
        for panel, axes, (own_colours, own_marks) in zip(self.panels, grid, legends):
            panel.draw(axes, own_colours if has_own_colours else colours)
            if not has_one_legend:
                if not has_own_colours:
                    own_marks = [mark for mark in marks if mark.get_label() in own_colours]
                self._draw_legend(axes, own_marks)
        self._write_heading(figure, titles, notes)
        if below:
            figure.legend(
                handles=marks, loc="lower left", bbox_to_anchor=(_MARGIN / _WIDTH_INCHES, 0.03 / height),
                ncol=self._legend_columns(marks, 1), frameon=False, borderaxespad=0, borderpad=0, fontsize="small",
            )  # fmt: skip
        figure.tight_layout(rect=(0, below / height, 1, 1 - heading / height))
        return figure

    def _write_heading(self, figure: Figure, titles: list[str], notes: list[str]) -> None:
        height = figure.get_figheight()
        left, y = _MARGIN / _WIDTH_INCHES, height - _MARGIN
        for line in titles:
            figure.text(left, y / height, line, fontsize=14, fontweight="bold", va="top")
            y -= _TITLE_INCHES
        for line in notes:
            figure.text(left, y / height, line, color=MUTED, va="top")
            y -= _LINE_INCHES

    def _draw_legend(self, axes: Axes, marks: list) -> None:
        """Below the axis and its title."""
        below = offset_copy(axes.transAxes, axes.figure, y=-_AXIS_POINTS, units="points")
        axes.legend(
            handles=marks, loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=below, frameon=False,
            ncol=self._legend_columns(marks, self.columns), fontsize="small", borderaxespad=0,
        )  # fmt: skip

    @staticmethod
    def _legend_columns(marks: list, columns: int) -> int:
        longest = max((len(mark.get_label()) for mark in marks), default=0)
        room = _WIDTH_INCHES / columns - 0.6  # without the labels of the axis
        return max(1, int(room / (_LEGEND_MARK_INCHES + _LEGEND_LETTER_INCHES * longest)))

    def _legend_lines(self, marks: list, columns: int) -> int:
        return math.ceil(len(marks) / self._legend_columns(marks, columns))


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
