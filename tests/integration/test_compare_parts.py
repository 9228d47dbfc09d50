# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/compare that need no cluster: arguments, figures, table."""

import html
import json
import os
import subprocess
import time
import types

import pytest
from compare_tool import COMPARE
from compare_lib import cluster, cpu, figures, main, mpi, network, options, requirements, table, wire
from compare_lib.cases import Case
from compare_lib.errors import CompareError, SystemFailed
from compare_lib.figures import Sample

SHAPE = figures.Shape(4, 2, iterations=10, nic_gbit_per_second=2.0, wire_gbit_per_second=1.75)
PATIENCE_S = 30


@pytest.mark.parametrize(
    ("text", "size"),
    [("10000", 10_000), ("1MB", 1_000_000), ("64KiB", 65_536), ("25mb", 25_000_000), ("4", 4)],
)
def test_sizes_are_read_as_braid_bench_reads_them(text, size):
    assert options.parse_bytes(text) == size


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--sizes", "10"], "multiples of the 4 bytes"),
        (["--sizes", "1MB,1000000"], "twice"),
        (["--sizes", "many"], "not a size"),
        (["--systems", "braid,nccl"], "none of braid, gloo, openmpi, openmpi-links4"),
        (["--repeats", "0"], "not a number from 1"),
        (["--flow-mbit", "50,fast"], "not a number of Mbit/s"),
        (["--delay-ms", "soon"], "not a number"),
        (["--delay-ms", "1", "--jitter-ms", "2"], "nothing arrives before it was sent"),
        (["--loss-percent", "100"], "give 0 to 99"),
        (["--json", "/no/such/folder/file"], "no such folder"),
        (["--systems", "gloo", "--set", "a=b"], "braid is not among the systems"),
        (["--through", "jax"], "invalid choice: 'jax'"),
        (["--collectives", "gather"], "--collectives: only with --through torch"),
        (["--dtypes", "bfloat16"], "--dtypes: only with --through torch"),
        (["--through", "torch", "--collectives", "gather,reduce"], "'reduce' is none of all_reduce, reduce_scatter"),
        (["--through", "torch", "--dtypes", "float8"], "'float8' is none of float32, bfloat16"),
        (["--through", "torch", "--systems", "braid,mpich"], "only braid, gloo can be measured, not mpich"),
        (["--through", "torch", "--nodes", "64", "--ranks-per-node", "5"], "320 ranks are more than the 256"),
        (["--before", "/no/such/checkout"], "there is no folder /no/such/checkout"),
    ],
)
def test_bad_arguments_are_told_before_anything_starts(arguments, complaint, capsys):
    with pytest.raises(SystemExit) as end:
        options.parse(arguments)
    assert end.value.code == 2 and complaint in capsys.readouterr().err


def test_what_is_not_installed_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(requirements.shutil, "which", lambda _: None)
    monkeypatch.setattr(requirements, "has_module", lambda *_: False)
    chosen = options.parse(["--systems", "gloo,openmpi,mpich"])
    with pytest.raises(CompareError) as error:
        requirements.check(chosen)
    assert "apt-get install iperf3" in str(error.value)
    assert (
        "openmpi needs mpirun, /usr/bin/python3 with numpy, /usr/bin/python3 with mpi4py: "
        "run apt-get install openmpi-bin python3-mpi4py python3-numpy"
    ) in str(error.value)
    assert "run scripts/setup --no-torch --peer mpich" in str(error.value)
    assert "torch is not in build/venv: run scripts/setup" in str(error.value)


def test_through_torch_braid_needs_its_library_and_its_package_also_the_one_before(monkeypatch, tmp_path):
    monkeypatch.setattr(requirements, "has_module", lambda *_: False)
    chosen = options.parse(["--through", "torch", "--no-wire", "--before", str(tmp_path)])
    with pytest.raises(CompareError) as error:
        requirements.check(chosen)
    assert "torch is not in build/venv: run scripts/setup" in str(error.value)
    for name in ("build/release/bin/braidd", "build/release/lib/libbraid.so.0", "python/braid/torch/__init__.py"):
        assert f"{tmp_path}/{name} is missing" in str(error.value)


def test_through_torch_other_things_are_measured_unless_they_are_given():
    chosen = options.parse(["--through", "torch"])
    assert chosen.systems == ["braid", "gloo"] and chosen.iterations == 10
    assert len(chosen.cases) == 14 and {case.bytes for case in chosen.cases} == {24_000_000}
    given = ["--sizes", "4,8", "--collectives", "gather", "--dtypes", "float64", "--iterations", "3"]
    chosen = options.parse(["--through", "torch", *given, "--systems", "gloo", "--before", "/tmp"])
    assert chosen.cases == [Case(4, "gather", "float64"), Case(8, "gather", "float64")]
    assert chosen.systems == ["gloo", "braid-before"] and chosen.iterations == 3
    chosen = options.parse([])
    assert chosen.cases == [Case(10_000), Case(1_000_000), Case(25_000_000)] and chosen.iterations == 20
    assert chosen.systems == ["braid", "gloo", "openmpi"]


@pytest.mark.parametrize("missing", ["numpy", "mpi4py"])
def test_the_module_that_is_missing_is_blamed(monkeypatch, missing):
    monkeypatch.setattr(requirements.shutil, "which", lambda name: name)
    monkeypatch.setattr(requirements, "has_module", lambda _, name: name != missing)
    with pytest.raises(CompareError) as error:
        requirements.check(options.parse(["--systems", "openmpi", "--no-wire"]))
    assert str(error.value).startswith(f"openmpi needs /usr/bin/python3 with {missing}: run ")


def test_a_system_that_finds_another_way_than_the_network_has_failed():
    nodes = [object()] * 4  # only how many they are counts
    network.expect_used(nodes, 1, Case(1000), iterations=10, sent=61_000)
    network.expect_used(nodes[:1], 1, Case(1000), iterations=10, sent=0)  # one node sends nothing
    complaint = "sent 40000 bytes in 10 times all_reduce of 1000 bytes, which need 60000"
    with pytest.raises(SystemFailed, match=complaint):
        network.expect_used(nodes, 1, Case(1000), iterations=10, sent=40_000)


@pytest.mark.parametrize(
    ("collective", "one_rank_per_node", "two"),
    [
        ("all_reduce", 6000, 6000), ("reduce_scatter", 3000, 3000), ("all_gather", 3000, 3000),
        ("broadcast", 3000, 3000), ("all_to_all", 3000, 6000), ("gather", 750, 750), ("scatter", 750, 750),
    ],
)  # fmt: skip
def test_what_must_cross_the_network(collective, one_rank_per_node, two):
    case = Case(1000, collective)
    assert [case.least_bytes_sent(4, ranks) for ranks in (1, 2)] == [one_rank_per_node, two]


def test_ranks_share_the_elements_of_a_case_equally():
    assert Case(1000).elements(4) == 252 and Case(24_000_000, dtype="bfloat16").elements(4) == 12_000_000
    assert Case(4, dtype="float64").elements(8) == 8


def test_every_mpi_library_gets_the_nodes_and_the_way_to_them():
    node = types.SimpleNamespace(address="10.0.0.1", interface="eth7")
    some = types.SimpleNamespace(nodes=[node], ranks_per_node=2, world_size=2)
    for name, library in mpi.LIBRARIES.items():
        words = [*library.arguments(some), *library.variables(some).values()]
        assert any("10.0.0.1" in word for word in words) and "eth7" in words, name
        assert any(word.endswith("/enter_node.sh") for word in words), name


def test_a_build_that_is_missing_is_named(tmp_path):
    done = subprocess.run(
        [COMPARE, "--systems", "braid", "--no-wire", "--build", str(tmp_path)],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and f"{tmp_path}/bin/braidd is missing" in done.stderr


def test_figures_follow_their_definitions():
    assert figures.slowest([[1, 5, 2], [3, 4, 1]]) == [3, 5, 2]
    assert figures.p99([5, 1, 3]) == 5
    assert figures.p99(list(range(1, 101))) == 99
    assert figures.bus_gbit_per_second(Case(1_000_000_000), 2, 8) == 1
    assert figures.bus_gbit_per_second(Case(1_000_000_000), 1, 8) == 0
    assert figures.bus_gbit_per_second(Case(1_000_000_000, "gather"), 2, 8) == 0.5
    assert figures.bus_gbit_per_second(Case(1_000_000_000, "broadcast"), 2, 8) == 1
    row = figures.row("gloo", Case(1_000_000), [Sample(0.5, 1, 4), Sample(0.1, 2, 8, 12), Sample(0.2, 3, 2)], SHAPE)
    assert (row["median_seconds"], row["p99_seconds"]) == (0.2, 2)
    assert row["bus_gbit_per_second"] == pytest.approx(2 * 7 / 8 * 8e6 / 0.2 / 1e9)
    assert row["line_fraction"] == pytest.approx(row["bus_gbit_per_second"] / 1.75)
    assert row["nic_fraction"] == pytest.approx(row["bus_gbit_per_second"] / 2)
    # 4 s on 4 nodes for 10 times a megabyte
    assert row["cpu_seconds_per_gigabyte"] == pytest.approx(100)
    assert row["machine_seconds_per_gigabyte"] == pytest.approx(300)  # of the repeats that tell
    assert row["repeats"][1] == {
        "median_seconds": 0.1, "p99_seconds": 2, "cpu_seconds": 8, "machine_seconds": 12,
    }  # fmt: skip


def test_without_a_wire_there_is_no_fraction_of_it():
    row = figures.row("gloo", Case(1000), [Sample(1, 1, 1)], figures.Shape(1, 2, iterations=1))
    assert row["line_fraction"] is None and row["nic_fraction"] is None


def test_the_machine_is_busy_as_far_as_no_processor_is_unused(monkeypatch):
    now, unused = [100.0], [3000.0]
    monkeypatch.setattr(cpu, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(cpu, "_unused_seconds", lambda: unused[0])
    monkeypatch.setattr(cpu.os, "cpu_count", lambda: 4)
    machine = cpu.Machine()
    now[0] += 0.4
    assert machine.busy_seconds() is None  # too early
    now[0] += 1.6
    unused[0] += 5
    assert machine.busy_seconds() == pytest.approx(4 * 2 - 5)
    unused[0] += 10  # the kernel counts in hundredths of a second
    assert machine.busy_seconds() == 0


def test_the_kernel_tells_how_long_processors_were_unused():
    assert 0 <= cpu._unused_seconds() <= (os.cpu_count() or 1) * time.clock_gettime(time.CLOCK_BOOTTIME) + 1


def rows(**seconds: float) -> list[dict]:
    return [figures.row(name, Case(1000), [Sample(s, s, s)], SHAPE) for name, s in seconds.items()]


def test_braid_is_compared_with_the_fastest_peer():
    case = {"bytes": 1000, "collective": "all_reduce", "dtype": "float32"}
    assert figures.comparisons(rows(braid=1.0, gloo=4.0, openmpi=2.0)) == [
        {**case, "best_peer": "openmpi", "braid_to_best_peer": 0.5, "braid_to_before": None}
    ]
    before = figures.comparisons(rows(**{"braid": 1.0, "braid-before": 0.8}))
    assert before == [{**case, "best_peer": None, "braid_to_best_peer": None, "braid_to_before": 1.25}]
    assert figures.comparisons(rows(gloo=4.0, openmpi=2.0)) == []
    assert figures.comparisons(rows(braid=4.0)) == []


def test_every_row_is_compared_with_gloo_and_with_the_braid_before():
    case, other = Case(1000, "gather", "bfloat16"), Case(1000, "gather")
    samples = {("braid", case): 1.0, ("gloo", case): 4.0, ("braid-before", case): 2.0, ("braid", other): 3.0}
    made = figures.rows({key: [Sample(s, s, s)] for key, s in samples.items()} | {("gloo", other): []}, SHAPE)
    assert [(row["to_gloo"], row["to_before"]) for row in made] == [(0.25, 0.5), (1, 2), (0.5, 1), (None, None)]
    assert (made[0]["collective"], made[0]["dtype"], made[0]["bytes"]) == ("gather", "bfloat16", 1000)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.00521, "0.00521"), (1.9, "1.90"), (42.04, "42.0"), (1234.5, "1234")]
)
def test_numbers_have_three_digits(value, text):
    assert table.number_text(value) == text


def test_times_and_sizes_have_units():
    assert table.seconds_text(12.34e-6) == "12.3 us"
    assert table.seconds_text(0.0123) == "12.30 ms"
    assert table.seconds_text(1.5) == "1.500 s"
    assert [table.bytes_text(b) for b in (1001, 10_000, 25_000_000)] == ["1001 B", "10 kB", "25 MB"]


class FakeSystem:
    """Works, or fails where it is told to."""

    versions = {"fake": "1 & <2>"}
    flows = 8

    def __init__(self, name: str, fails_at: str):
        self.name, self._fails_at = name, fails_at

    def start(self):
        self._fail("start")

    def measure(self, case):
        self._fail(case.bytes)
        return Sample(0.1, 0.2, 0.3, 0.4 if case.bytes == 2000 else None)

    def close(self):
        pass

    def _fail(self, now):
        if self._fails_at == now:
            raise SystemFailed("it said <nothing> & ended")


class FakeCluster:
    def __init__(self, *_):
        pass

    def check(self):
        pass

    def end(self):
        return None


def compare(monkeypatch, tmp_path, *arguments, **failures) -> tuple[int, dict]:
    """Its exit code and its report."""
    monkeypatch.setattr(main, "Cluster", FakeCluster)
    monkeypatch.setattr(main.requirements, "check", lambda _: None)
    monkeypatch.setattr(main.course.signal, "signal", lambda *_: None)
    monkeypatch.setattr(main.wire, "measure", lambda _, n: wire.Wire(n, [1.5, 1.7]))
    monkeypatch.setattr(main.systems, "make", lambda name, *_: FakeSystem(name, failures.get(name)))
    results = tmp_path / "results.json"
    code = main.main(["--sizes", "1000,2000", "--repeats", "2", "--json", str(results), *arguments])
    return code, json.loads(results.read_text())


def drawn(tmp_path, report: dict) -> str:
    benchmarks = pytest.importorskip("braid.plot.benchmarks", reason="matplotlib is not installed")
    benchmarks.compare(report, "").save(tmp_path / "compare.svg")
    return html.unescape((tmp_path / "compare.svg").read_text())


def test_a_whole_comparison(monkeypatch, tmp_path, capsys):
    code, report = compare(monkeypatch, tmp_path)
    assert code == 0 and report["errors"] == {}
    assert report["wire_gbit_per_second"] == pytest.approx(1.6) and report["wire_connections"] == 8
    assert len(report["rows"]) == 6 and all(len(row["repeats"]) == 2 for row in report["rows"])
    printed = capsys.readouterr().out
    assert "1 kB" in printed and "1 kB: braid ÷ gloo, the fastest peer: 1.00" in printed


def test_a_whole_comparison_through_torch_with_the_braid_before(monkeypatch, tmp_path, capsys):
    code, report = compare(monkeypatch, tmp_path, "--through", "torch", "--before", str(tmp_path))
    assert code == 0 and report["errors"] == {} and report["through"] == "torch"
    assert len(report["rows"]) == 2 * 7 * 2 * 3 and len(report["comparisons"]) == 2 * 7 * 2
    heading, columns, *lines = capsys.readouterr().out.splitlines()
    assert heading.startswith("# through torch, nodes: 4") and len(lines) == len(report["rows"])
    assert columns.split()[:3] == ["collective", "system", "dtype"]
    assert columns.endswith("÷ gloo  ÷ before")
    assert {"braid", "gloo", "braid-before"} == {line.split()[1] for line in lines}
    picture = drawn(tmp_path, report)
    assert "Collectives through torch: braid, gloo, braid-before" in picture
    assert picture.count("bfloat16, 2 kB: time of one operation, median (") == 1 and "all_to_all" not in picture


def test_a_system_that_takes_no_part_has_no_column(monkeypatch, tmp_path, capsys):
    compare(monkeypatch, tmp_path, "--through", "torch", "--systems", "braid")
    assert "÷" not in capsys.readouterr().out


@pytest.mark.parametrize(("fails_at", "rows_left"), [("start", 4), (2000, 5)])
def test_the_error_of_one_system_leaves_the_others_their_rows(monkeypatch, tmp_path, capsys, fails_at, rows_left):
    code, report = compare(monkeypatch, tmp_path, gloo=fails_at)
    assert code == 1 and list(report["errors"]) == ["gloo"]
    assert len(report["rows"]) == rows_left
    assert "gloo FAILED: it said <nothing> & ended" in capsys.readouterr().out


def test_machine_time_that_short_loops_do_not_tell_is_left_out(monkeypatch, tmp_path):
    _, report = compare(monkeypatch, tmp_path)
    told = {row["bytes"]: row["machine_seconds_per_gigabyte"] for row in report["rows"]}
    assert told == {1000: None, 2000: pytest.approx(0.4 / 4 / (2000 * 20 / 1e9))}
    assert drawn(tmp_path, report).count(">1 kB<") == 3, "below the bars of all panels but this one"
    _, report = compare(monkeypatch, tmp_path, "--sizes", "1000")
    assert "of the whole node" not in drawn(tmp_path, report)


def test_delay_and_loss_are_told_everywhere(monkeypatch, tmp_path, capsys):
    arguments = ("--delay-ms", "2.5", "--jitter-ms", "0.5", "--loss-percent", "0.1")
    _, report = compare(monkeypatch, tmp_path, *arguments)
    assert {(row["delay_ms"], row["loss_percent"]) for row in report["rows"]} == {(2.5, 0.1)}
    assert (report["delay_ms"], report["jitter_ms"], report["loss_percent"]) == (2.5, 0.5, 0.1)
    told = "delay 2.5 ± 0.5 ms (round trip 5 ms), loss 0.1 %"
    assert told in capsys.readouterr().out and told in drawn(tmp_path, report)


def test_the_cluster_is_asked_for_delay_only_if_it_was_wanted():
    line = cluster.command(options.parse(["--delay-ms", "1", "--loss-percent", "0.0001"]))
    asked = dict(zip(line[1::2], line[2::2], strict=False))
    assert float(asked["--delay-ms"]) == 1 and float(asked["--loss-percent"]) == 0.0001
    assert "--delay-ms" not in cluster.command(options.parse([]))


def test_what_iperf3_says_is_understood():
    assert wire.parse('{"end": {"sum_received": {"bits_per_second": 2e9}}}') == 2.0
    with pytest.raises(ValueError, match="refused"):
        wire.parse('{"error": "refused"}')
