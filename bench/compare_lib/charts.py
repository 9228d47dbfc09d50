# SPDX-License-Identifier: Apache-2.0
"""Inline SVG: bars of one figure by size and system. Colours are classes; the page's style has them."""

import math
from html import escape

from .table import bytes_text

_WIDTH = 760
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 8, 34, 30
_HEIGHT = 330
_BAR_MAX = 64
_PANEL_ROW = 26
_PANEL_NAME = 110
_PANEL_VALUE = 74
_TICKS = 5


def nice_step(largest: float) -> float:
    """1, 2 or 5 times a power of ten, so that about five of them reach the largest value."""
    if largest <= 0:
        return 1.0
    rough = largest / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= rough * 0.999)


def short_text(value: float) -> str:
    """Narrower than a bar; the table has all digits."""
    if 0 < value < 0.01:
        return "<0.01"
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def grouped(rows: list[dict], systems: list[str], key: str, limit: tuple[float, str] | None) -> str:
    """Vertical bars: a group per size, a bar per system; `limit` is a line with its label."""
    sizes = list(dict.fromkeys(row["bytes"] for row in rows))
    values = {(row["bytes"], row["system"]): row[key] for row in rows}
    largest = max([*values.values(), limit[0] if limit else 0.0])
    step = nice_step(largest)
    top = max(step, math.ceil(largest / step - 1e-9) * step)
    bottom = _HEIGHT - _BOTTOM

    def y(value: float) -> float:
        return bottom - value / top * (bottom - _TOP)

    parts = []
    for tick in range(round(top / step) + 1):
        at = y(tick * step)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(_text(_LEFT - 8, at + 4, f"{tick * step:.10g}", "tick end"))
    if limit:
        at = y(limit[0])
        parts.append(f'<line class="limit" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(_text(_LEFT + 4, at - 6, limit[1], "value"))
    group = (_WIDTH - _LEFT - _RIGHT) / max(1, len(sizes))
    bar = min(_BAR_MAX, group * 0.8 / max(1, len(systems)))
    for place, size in enumerate(sizes):
        middle = _LEFT + group * (place + 0.5)
        parts.append(_text(middle, _HEIGHT - 8, bytes_text(size), "label mid"))
        for number, system in enumerate(systems):
            value = values.get((size, system))
            if value is None:
                continue
            x = middle + (number - len(systems) / 2) * bar
            parts.append(_bar(x + 2, y(value), bar - 4, bottom - y(value), system, value))
            parts.append(_text(x + bar / 2, y(value) - 5, short_text(value), "value mid"))
    return _svg(_WIDTH, _HEIGHT, parts, key)


def panel(rows: list[dict], size: int, key: str, write) -> str:
    """Horizontal bars of one size, on a scale of their own; `write` makes text of a value."""
    own = [row for row in rows if row["bytes"] == size]
    width, height = 370, 28 + _PANEL_ROW * len(own)
    room = width - _PANEL_NAME - _PANEL_VALUE
    largest = max((row[key] for row in own), default=0.0) or 1.0
    parts = [_text(0, 16, bytes_text(size), "label")]
    for place, row in enumerate(own):
        y = 26 + place * _PANEL_ROW
        length = max(1.0, row[key] / largest * room)
        parts.append(_text(_PANEL_NAME - 8, y + 14, row["system"], "tick end"))
        parts.append(_bar(_PANEL_NAME, y, length, _PANEL_ROW - 8, row["system"], row[key]))
        parts.append(_text(_PANEL_NAME + length + 6, y + 14, write(row[key]), "value"))
    return _svg(width, height, parts, f"{key}, {bytes_text(size)}")


def _bar(x: float, y: float, width: float, height: float, system: str, value: float) -> str:
    return (
        f'<rect class="{escape(system)}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{max(height, 1.0):.1f}" rx="2"><title>{escape(system)}: {value:.6g}</title></rect>'
    )


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _svg(width: int, height: int, parts: list[str], title: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" style="max-width:{width}px" role="img" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>' + "".join(parts) + "</svg>"
    )
