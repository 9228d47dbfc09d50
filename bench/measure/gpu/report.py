# SPDX-License-Identifier: Apache-2.0
"""A run's report as Markdown, ready for docs/benchmarks.md."""

from collections.abc import Callable

from ..table import bytes_text, number_text
from . import plan
from .bars import Rows

_NETWORK_NAMES = {
    plan.OPEN: "no caps",
    plan.CAPPED: "NIC 2 Gbit/s, flows 0.5",
    plan.UNEVEN: "NIC 2 Gbit/s, flows 0.5, 0.5, 0.5, 0.025",
}
_SYSTEM_NAMES = {
    plan.BRAID: "braid",
    plan.NCCL: "NCCL",
    plan.NCCL_SOCKETS: "NCCL, 2 × 8 sockets",
    plan.GLOO: "gloo",
    plan.IPERF: "iperf3",
}
_WAYS = {"ddp": "DDP", "ddp-buckets": "DDP, buckets of 25 MiB", "fsdp": "FSDP2"}

_REASON_MAX = 200  # characters; the JSON file has all
_FACTS = {
    "driver": "driver", "pcie_generation": "PCIe", "pcie_width": "lanes", "numa_node": "NUMA node",
    "gpu_memory_mib": "MiB of GPU memory:",
}  # fmt: skip

# A heading, and the text of a row's cell.
Column = tuple[str, Callable[[dict], str]]


def lines(report: dict) -> list[str]:
    """`report`: as it is in the JSON file."""
    rows = Rows(report["rows"])
    return [
        *_heading(report),
        *_bars(report["bars"]),
        *_training(rows),
        *_rates(rows),
        *_single(rows),
        *_probe(rows),
        *_not_done(report["steps"]),
    ]


def _table(columns: list[Column], rows: list[dict]) -> list[str]:
    """Nothing for no rows; else an empty line before it."""
    if not rows:
        return []
    made = ["", _line(title for title, _ in columns), _line("---" for _ in columns)]
    return [*made, *(_line(text(row) for _, text in columns) for row in rows)]


def _line(cells) -> str:
    return f"| {' | '.join(cells)} |"


def _heading(report: dict) -> list[str]:
    machine = report["machine"]
    if report["is_rehearsal"]:
        parts = ["a rehearsal on the processor, whose figures say nothing about a GPU"]
    else:
        parts = [machine["card"] or "a card that does not say its name"]
        parts += [f"{name} {machine[key]}" for key, name in _FACTS.items() if machine[key] is not None]
        parts.append("MPS" if machine["mps"] else "without MPS, so the kernels of the two ranks take turns")
    parts += [f"{machine['cores']} cores", f"kernel {machine['kernel']}", f"braid {machine['braid'] or 'unknown'}"]
    parts += [f"{name} {report['versions'][name]}" for name in ("torch", "CUDA", "NCCL") if name in report["versions"]]
    where = {
        True: "between two namespaces",
        False: "over the loopback interface and without caps, because namespaces are not allowed here",
        None: "without a network: no cluster was made",
    }[report["has_namespaces"]]
    return [f"One run of {report['date']}: {', '.join(parts)}. Two ranks share the device, {where}."]


def _bars(bars: list[dict]) -> list[str]:
    words = {True: "yes", False: "**no**", None: "not measured"}
    return _table(
        [
            ("what must hold", lambda bar: bar["name"]),
            ("wanted", lambda bar: bar["wanted"]),
            ("measured", lambda bar: "-" if bar["value"] is None else number_text(bar["value"])),
            ("held", lambda bar: words[bar["held"]]),
        ],
        bars,
    )


def _place(row: dict) -> str:
    return f"{_NETWORK_NAMES[row['network']]}: {_SYSTEM_NAMES[row['system']]}"


def _field(title: str, name: str, scale: float = 1.0) -> Column:
    return title, lambda row: "-" if row[name] is None else number_text(row[name] * scale)


def _training(rows: Rows) -> list[str]:
    found = [row for way in _WAYS for row in rows.of(way)]
    return _table(
        [
            ("steps", lambda row: _WAYS[row["test"]]),
            ("network: system", _place),
            _field("step, ms", "step_seconds", 1e3),
            _field("computing, ms", "computing_seconds", 1e3),
            _field("bytes on the wire, ms", "wire_seconds", 1e3),
            _field("held in backward, ms", "backward_held_seconds", 1e3),
        ],
        found,
    )


def _rates(rows: Rows) -> list[str]:
    order = {name: place for place, name in enumerate(_NETWORK_NAMES)}
    found = sorted(rows.of("rates"), key=lambda row: (order[row["network"]], row["bytes"]))
    made = _table(
        [
            ("all-reduce", lambda row: bytes_text(row["bytes"])),
            ("network: system", _place),
            _field("ms", "median_seconds", 1e3),
            _field("Gbit/s", "bus_gbit_per_second"),
            _field("processor s/GB", "cpu_seconds_per_gigabyte"),
            _field("machine s/GB", "machine_seconds_per_gigabyte"),
        ],
        found,
    )
    for row in rows.of("wire"):
        machine = row["machine_seconds_per_gigabyte"]
        cost = "" if machine is None else f", {number_text(machine)} s of the machine's processors a GB"
        made += ["", f"iperf3 over {row['connections']} connections each way: {number_text(row['gbit_per_second'])} "
                 f"Gbit/s{cost}."]  # fmt: skip
    return made


def _single(rows: Rows) -> list[str]:
    made = _table(
        [
            ("collectives", _place),
            ("done", lambda row: str(row["done"])),
            ("wrong", lambda row: str(row["wrong"])),
            ("refused", lambda row: str(row["refused"])),
            ("which", lambda row: "; ".join(row["named"]).replace("|", "/") or "-"),
        ],
        rows.of("collectives"),
    )
    made += _table(
        [
            ("products per second", _place),
            _field("alone", "products_alone_per_second"),
            _field("beside a collective", "products_beside_per_second"),
            _field("ratio", "ratio"),
            ("the collective outlasted them", lambda row: "yes" if row["outlasted"] else "no"),
        ],
        rows.of("beside"),
    )
    made += _table(
        [
            ("all-reduce over several communicators", _place),
            ("communicators", lambda row: str(row["count"])),
            _field("ms", "median_seconds", 1e3),
            _field("Gbit/s", "bus_gbit_per_second"),
        ],
        rows.of("communicators"),
    )
    return made + _table(
        [
            ("copies while reducing", _place),
            _field("to the host, GB/s", "to_host_gb_per_second"),
            _field("to the GPU, GB/s", "to_device_gb_per_second"),
        ],
        rows.of("copies"),
    )


def _probe(rows: Rows) -> list[str]:
    made = _table(
        [
            ("the driver's copies", lambda row: f"{row['bytes'] >> 10} KiB"),
            _field("to the host, GB/s", "d2h_gb_s"),
            _field("to the GPU, GB/s", "h2d_gb_s"),
            _field("both at once, GB/s", "both_gb_s"),
            _field("a call, µs", "call_us"),
        ],
        rows.of("probe copy"),
    )
    for test, title in (
        ("probe register", "registering host memory"),
        ("probe context-memory", "context"),
        ("probe words", "words between GPU and host"),
        ("probe host-functions", "functions of the host"),
        ("probe calls", "calls"),
        ("probe blocked-streams", "streams that wait"),
        ("probe holder", "who stands still"),
        ("probe queue-depth", "queue"),
        ("probe export", "exported memory"),
        ("probe import", "imported memory"),
        ("probe refused", "what the driver refused"),
    ):
        found = [{name: value for name, value in row.items() if name != "test"} for row in rows.of(test)]
        names = list(dict.fromkeys(name for row in found for name in row))
        columns = [(name.replace("_", " "), lambda row, n=name: _plain(row.get(n))) for name in names]
        if found:
            made += ["", f"{title.capitalize()}:", *_table(columns, found)]
    return made


def _plain(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else number_text(value) if isinstance(value, float) else str(value)


def _name(step: dict) -> str:
    return " ".join(filter(None, (step["network"], step["system"], step["test"])))


def _not_done(steps: list[dict]) -> list[str]:
    left = [step for step in steps if step["outcome"] != "done"]
    return _table(
        [
            ("step without figures, or not all", _name),
            ("limit, s", lambda step: f"{step['limit_s']:g}"),
            ("why", lambda step: " ".join(step["outcome"].split()).replace("|", "/")[:_REASON_MAX]),
        ],
        left,
    )
