# SPDX-License-Identifier: Apache-2.0
"""The report as one page: no script, nothing from a network, readable in light and dark."""

from html import escape

from . import charts, table

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #5b6670; --rule: #d9dee3; --paper: #fff;
  --braid: #2166d1; --gloo: #8d96a0; --openmpi: #d07a1f; --links4: #2f9384; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --soft: #9aa5af; --rule: #343b42;
  --paper: #15181b; --braid: #6ba4ff; --gloo: #8b949e; --openmpi: #e89a4c; --links4: #56bdad;
  --bad: #ff8a80; } }
body { margin: 2rem auto; max-width: 860px; padding: 0 1rem; color: var(--ink);
  background: var(--paper); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .4rem; }
p { margin: .3rem 0; } .soft, caption, dt { color: var(--soft); }
svg { width: 100%; height: auto; display: block; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .tick { fill: var(--soft); } svg .label { font-weight: 600; }
svg .value { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
.end { text-anchor: end; } .mid { text-anchor: middle; }
.grid { stroke: var(--rule); } .limit { stroke: var(--ink); stroke-dasharray: 6 4; stroke-width: 1.5; }
.braid { fill: var(--braid); } .gloo { fill: var(--gloo); } .openmpi { fill: var(--openmpi); }
.openmpi-links4 { fill: var(--links4); }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(300px, 1fr)); gap: 1rem; }
.legend span { margin-right: 1.2rem; white-space: nowrap; }
.legend svg { display: inline-block; width: 12px; height: 12px; margin-right: .35rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid var(--rule);
  white-space: nowrap; font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 500; } th:nth-child(2), td:nth-child(2) { text-align: left; }
code, pre { font: 13px/1.4 ui-monospace, monospace; } pre { white-space: pre-wrap; }
.failed { color: var(--bad); } dl { display: grid; grid-template-columns: max-content 1fr;
  gap: .1rem 1rem; margin: 0; } dd { margin: 0; }
"""


def of(report: dict) -> str:
    rows = report["rows"]
    systems = list(dict.fromkeys(row["system"] for row in rows))
    body = [f"<h1>All-reduce: {escape(', '.join(systems))}</h1>"]
    body.append(f'<p class="soft">{escape(table.heading(report))}</p>')
    for one in report["comparisons"]:
        size = table.bytes_text(one["bytes"])
        text = f"{size}: time of {table.comparison_text(one)} (below 1 is better)"
        body.append(f"<p>{escape(text)}</p>")
    for name, text in report["errors"].items():
        body.append(f'<p class="failed">{escape(name)} failed:</p><pre>{escape(text)}</pre>')
    if rows:
        body += _charts(rows, systems, report["wire_gbit_per_second"])
        body.append("<h2>All figures</h2>" + _table(report))
    body.append("<h2>How it was measured</h2>" + _origin(report))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>All-reduce: braid and its peers</title><style>{_STYLE}</style></head>\n<body>"
        + "\n".join(body)
        + "</body></html>\n"
    )


def _charts(rows: list[dict], systems: list[str], wire: float | None) -> list[str]:
    limit = (wire, f"the wire: {table.number_text(wire)} Gbit/s") if wire else None
    sizes = list(dict.fromkeys(row["bytes"] for row in rows))

    def panels(key: str, write) -> str:
        untold = {row["bytes"] for row in rows if row[key] is None}
        told = [size for size in sizes if size not in untold]
        drawn = "".join(f"<div>{charts.panel(rows, size, key, write)}</div>" for size in told)
        return f'<div class="panels">{drawn}</div>' if told else '<p class="soft">no loop was long enough to tell</p>'

    return [
        "<h2>Bus bandwidth, Gbit/s</h2>",
        _legend(systems),
        charts.grouped(rows, systems, "bus_gbit_per_second", limit),
        "<h2>Time of one all-reduce</h2>",
        panels("median_seconds", table.seconds_text),
        "<h2>Processor seconds per node and gigabyte</h2>",
        panels("cpu_seconds_per_gigabyte", table.number_text),
        "<h2>The same of the whole machine, with what no process is charged for</h2>",
        panels("machine_seconds_per_gigabyte", table.number_text),
    ]


def _legend(systems: list[str]) -> str:
    square = '<svg viewBox="0 0 12 12"><rect class="{0}" width="12" height="12" rx="2"/></svg>{0}'
    entries = "".join(f"<span>{square.format(escape(system))}</span>" for system in systems)
    return f'<p class="legend">{entries}</p>'


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
