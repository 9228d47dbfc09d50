# SPDX-License-Identifier: Apache-2.0
"""The report as one page: no script, nothing from a network, readable in light and dark."""

from collections.abc import Callable
from html import escape

from . import charts, figures, table

Draw = Callable[[dict], str]  # makes SVG of a figure

_UNTOLD = '<p class="soft">no loop was long enough to tell</p>'
_PROCESSOR = "Processor seconds per node and gigabyte"
_MACHINE = "The same of the whole machine, with what no process is charged for"

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #5b6670; --rule: #d9dee3; --paper: #fff;
  --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --soft: #9aa5af; --rule: #343b42;
  --paper: #15181b; --bad: #ff8a80; } }
body { margin: 2rem auto; max-width: 860px; padding: 0 1rem; color: var(--ink);
  background: var(--paper); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .4rem; }
p { margin: .3rem 0; } .soft, caption, dt { color: var(--soft); }
svg { max-width: 100%; height: auto; display: block; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid var(--rule);
  white-space: nowrap; font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 500; } th:nth-child(2), td:nth-child(2) { text-align: left; }
code, pre { font: 13px/1.4 ui-monospace, monospace; } pre { white-space: pre-wrap; }
.failed { color: var(--bad); } dl { display: grid; grid-template-columns: max-content 1fr;
  gap: .1rem 1rem; margin: 0; } dd { margin: 0; }
"""


def of(report: dict, draw: Draw) -> str:
    rows = report["rows"]
    systems = list(dict.fromkeys(row["system"] for row in rows))
    what = "Collectives through torch" if report["through"] else "All-reduce"
    body = [f"<h1>{what}: {escape(', '.join(systems))}</h1>"]
    body.append(f'<p class="soft">{escape(table.heading(report))}</p>')
    for one in table.listed_comparisons(report):
        text = f"{table.bytes_text(one['bytes'])}: time of {table.comparison_text(one)} (below 1 is better)"
        body.append(f"<p>{escape(text)}</p>")
    for name, text in report["errors"].items():
        body.append(f'<p class="failed">{escape(name)} failed:</p><pre>{escape(text)}</pre>')
    if rows:
        chosen = _charts_through_torch if report["through"] else _charts
        body += chosen(rows, systems, report["wire_gbit_per_second"], draw)
        body.append("<h2>All figures</h2>" + _table(report))
    body.append("<h2>How it was measured</h2>" + _origin(report))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{what}: braid and its peers</title><style>{_STYLE}</style></head>\n<body>"
        + "\n".join(body)
        + "</body></html>\n"
    )


def _charts(rows: list[dict], systems: list[str], wire: float | None, draw: Draw) -> list[str]:
    limit = (wire, f"the wire: {table.number_text(wire)} Gbit/s") if wire else None
    sizes = list(dict.fromkeys(row["bytes"] for row in rows))

    def by_size(key: str, unit: charts.Unit) -> str:
        untold = {row["bytes"] for row in rows if row[key] is None}
        told = [size for size in sizes if size not in untold]
        if not told:
            return _UNTOLD
        return draw(charts.by_size(rows, systems, told, key, unit))

    return [
        "<h2>Bus bandwidth</h2>",
        draw(charts.bandwidth(rows, systems, limit)),
        "<h2>Time of one all-reduce, median</h2>",
        by_size("median_seconds", charts.seconds_unit),
        f"<h2>{_PROCESSOR}</h2>",
        by_size("cpu_seconds_per_gigabyte", charts.per_gigabyte),
        f"<h2>{_MACHINE}</h2>",
        by_size("machine_seconds_per_gigabyte", charts.per_gigabyte),
    ]


def _charts_through_torch(rows: list[dict], systems: list[str], _: float | None, draw: Draw) -> list[str]:
    def by_collective(key: str, unit: charts.Unit) -> str:
        untold = {figures.case_of(row) for row in rows if row[key] is None}
        told = [row for row in rows if figures.case_of(row) not in untold]
        return draw(charts.by_collective(told, systems, key, unit)) if told else _UNTOLD

    return [
        "<h2>Time of one operation, median</h2>",
        by_collective("median_seconds", charts.seconds_unit),
        f"<h2>{_PROCESSOR}</h2>",
        by_collective("cpu_seconds_per_gigabyte", charts.per_gigabyte),
        f"<h2>{_MACHINE}</h2>",
        by_collective("machine_seconds_per_gigabyte", charts.per_gigabyte),
    ]


def _table(report: dict) -> str:
    heading, *lines = table.cells(report)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _origin(report: dict) -> str:
    load = " to ".join(f"{value:.1f}" for value in report["load_average"])
    entries = {
        "repeats": f"{report['repeats']} of {report['iterations']} iterations",
        **report["versions"],
        "load average": load,
    }
    listed = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in entries.items())
    return f"<pre>{escape(report['command'])}</pre><dl>{listed}</dl>"
