# SPDX-License-Identifier: Apache-2.0
"""The report for a terminal."""

from compare_lib.table import number_text, percent_text, seconds_text

from .figures import COORDINATOR, MEMBER

_ROWS = (
    # name in the JSON file, heading, divided by
    ("peers", "peers", 1),
    ("flows", "flows", 1),
    ("descriptors", "descriptors", 1),
    ("threads", "threads", 1),
    ("memory_bytes", "memory, MiB", 1 << 20),
    ("idle_bytes_per_second", "idle, B/s sent", 1),
    ("idle_packets_per_second", "idle, packets/s sent", 1),
    ("idle_cpu_share", "idle, cores", 1),
    ("formation_cpu_seconds", "formation, CPU ms", 1e-3),
    ("formation_messages_sent", "formation, messages sent", 1),
    ("formation_messages_received", "formation, messages received", 1),
    ("formation_bytes_sent", "formation, kB sent", 1e3),
    ("formation_bytes_received", "formation, kB received", 1e3),
    ("operation_messages", "operation, messages sent", 1),
    ("operation_bytes", "operation, B sent", 1),
    ("operation_chunks", "operation, chunks sent", 1),
    ("step_operations", "steps, operations", 1),
    ("step_bytes_sent", "steps, kB sent", 1e3),
)
_PLANS = (
    ("plan_reports", "plan reports of a member", 1),
    ("plan_report_bytes", "a report, B", 1),
    ("plan_rounds", "plan rounds", 1),
    ("plan_round_bytes", "a round to a member, B", 1),
)


def of(report: dict) -> str:
    points = report["points"]
    lines = [f"# {report['tensors']} planned tensors of {report['trace']}, load {report['load_average']}"]
    if points:
        lines += _aligned(_cells(points))
    for one in report["formulas"]:
        lines.append(formula_text(one))
    # All of it was said when it happened, and is in the JSON file.
    lines += [f"{k} FAILED: {text.partition(chr(10))[0]}" for k, text in report["errors"].items()]
    return "\n".join(lines)


def _cells(points: list[dict]) -> list[list[str]]:
    names = [f"{one['nodes']}x{one['ranks_per_node']}x{one['jobs']}" for one in points]
    found = [["nodes x ranks x jobs", *names]]
    found.append(["formation", *(seconds_text(one["formation_seconds"]) for one in points)])
    for name, heading, unit in _ROWS:
        for role in (COORDINATOR, MEMBER):
            texts = [number_text(one[role][name] / unit) for one in points]
            found.append([f"{heading} ({role})", *texts])
    for name, heading, unit in _PLANS:
        texts = ["-" if one["plans"] is None else number_text(one["plans"][name] / unit) for one in points]
        found.append([heading, *texts])
    return found


def _aligned(cells: list[list[str]]) -> list[str]:
    widths = [max(len(line[at]) for line in cells) for at in range(len(cells[0]))]
    return [
        "  ".join([line[0].ljust(widths[0]), *(t.rjust(w) for t, w in zip(line[1:], widths[1:], strict=True))])
        for line in cells
    ]


def formula_text(formula: dict) -> str:
    parts = [
        number_text(value) if term == "1" else f"{number_text(value)} {term}"
        for term, value in formula["terms"].items()
    ]
    who = "" if len(formula["roles"]) > 1 else f" ({formula['roles'][0]})"
    text = " + ".join(parts).replace("+ -", "- ")
    return f"{formula['quantity']}{who} = {text}; off by {percent_text(formula['residual_share'])} at most"
