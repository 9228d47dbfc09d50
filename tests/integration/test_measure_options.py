# SPDX-License-Identifier: Apache-2.0
"""The command lines of bench/compare, train, steps and scale, and what they need."""

import subprocess

import bench_tools
import pytest
from measure import needs
from measure.compare import options as compare
from measure.compare.cases import Case
from measure.compare.main import Comparison
from measure.options import parse_bytes
from measure.scale import main as scale
from measure.training import steps, systems, train

PATIENCE_S = 30
PARSERS = {"compare": compare.parse, "train": train.parse, "steps": steps.parse, "scale": scale.parse}


@pytest.mark.parametrize(
    ("text", "size"),
    [("10000", 10_000), ("1MB", 1_000_000), ("64KiB", 65_536), ("25mb", 25_000_000), ("4", 4)],
)
def test_sizes_are_read_as_braid_bench_reads_them(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("compare --sizes 10", "--sizes"),
        ("compare --sizes 1MB,1000000", "--sizes"),
        ("compare --systems braid,nccl", "'nccl'"),
        ("compare --flow-mbit 50,fast", "--flow-mbit"),
        ("compare --delay-ms 1 --jitter-ms 2", "--jitter-ms"),
        ("compare --json /no/such/folder/file", "--json"),
        ("compare --systems gloo --set a=b", "--set"),
        ("compare --collectives gather", "--collectives"),
        ("compare --through torch --systems braid,mpich", "mpich"),
        ("compare --through torch --nodes 64 --ranks-per-node 5", "320 ranks"),
        ("compare --before /no/such/checkout", "/no/such/checkout"),
        ("train --systems mpi", "'mpi'"),
        ("train --systems braid:", "'braid:'"),
        ("train --systems gloo,gloo", "--systems"),
        ("train --systems gloo:int8", "a hook is one of"),
        ("train --systems braid:hook=", "a hook is one of"),
        ("train --systems braid@speed=2", "learning-rate"),
        ("train --systems braid@momentum=1", "'1'"),
        ("train --systems od-sgd:pull_every=2", "pull_every"),
        ("train --systems sharded:pull=int8", "'pull=int8'"),
        ("train --systems acco:overlap_forward", "'overlap_forward'"),
        ("train --systems ssd-sgd:pull_every=3,local=sgd", "diverges"),
        ("train --systems diloco:30", "--evaluate-every"),
        ("train --systems gloo --set tune.mode=off", "--set"),
        ("train --learning-rate nan", "--learning-rate"),
        ("train --dataset fashion-mnist --layers 3", "--layers"),
        ("train --evaluate-every 7", "--evaluate-every"),
        ("steps --systems od-sgd,braid", "--systems"),
        ("steps --systems braid,gloo", "gloo"),
        ("steps --communication 0", "--communication"),
        ("steps --timeline --communication 1", "--json"),
        ("scale --points 1", "'1'"),
        ("scale --points 8x1x1x1", "'8x1x1x1'"),
        ("scale --points 8x0", "'8x0'"),
        ("scale --points 128x16", "2048"),
        ("scale --trace /no/such/trace", "/no/such/trace"),
    ],
)
def test_bad_arguments_are_told_before_anything_starts(line, named, capsys):
    command, *arguments = line.split()
    with pytest.raises(SystemExit) as end:
        PARSERS[command](arguments)
    assert end.value.code == 2 and named in capsys.readouterr().err


@pytest.mark.parametrize("command", ["COMPARE", "SCALE", "STEPS", "TRAIN"])
def test_a_build_that_is_missing_is_named(command, tmp_path):
    done = subprocess.run(
        [getattr(bench_tools, command), "--build", str(tmp_path)],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and f"{tmp_path}/bin/braidd is missing" in done.stderr and done.stdout == ""


def test_what_is_not_installed_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(needs.shutil, "which", lambda _: None)
    monkeypatch.setattr(needs, "has_module", lambda *_: False)
    said = "; ".join(Comparison(compare.parse(["--systems", "gloo,openmpi,mpich"])).missing())
    for named in ("apt-get install iperf3", "openmpi-bin python3-mpi4py python3-numpy", "--peer mpich", "torch"):
        assert named in said


@pytest.mark.parametrize("missing", ["numpy", "mpi4py"])
def test_the_module_that_is_missing_is_blamed(monkeypatch, missing):
    monkeypatch.setattr(needs.shutil, "which", lambda name: name)
    monkeypatch.setattr(needs, "has_module", lambda _, name: name != missing)
    (said,) = Comparison(compare.parse(["--systems", "openmpi", "--no-wire"])).missing()
    assert said.startswith(f"openmpi needs /usr/bin/python3 with {missing}: ")


def test_through_torch_braid_needs_its_library_and_its_package_also_the_one_before(tmp_path):
    chosen = compare.parse(["--through", "torch", "--no-wire", "--before", str(tmp_path)])
    said = "; ".join(Comparison(chosen).missing())
    for name in ("build/release/bin/braidd", "build/release/lib/libbraid.so.0", "python/braid/torch/__init__.py"):
        assert f"{tmp_path}/{name} is missing" in said


def test_through_torch_other_things_are_measured_unless_they_are_given():
    chosen = compare.parse(["--through", "torch"])
    assert chosen.systems == ["braid", "gloo"] and chosen.iterations == 10
    assert len(chosen.cases) == 14 and {case.bytes for case in chosen.cases} == {24_000_000}
    given = ["--sizes", "4,8", "--collectives", "gather", "--dtypes", "float64", "--iterations", "3"]
    chosen = compare.parse(["--through", "torch", *given, "--systems", "gloo", "--before", "/tmp"])
    assert chosen.cases == [Case(4, "gather", "float64"), Case(8, "gather", "float64")]
    assert chosen.systems == ["gloo", "braid-before"] and chosen.iterations == 3
    chosen = compare.parse([])
    assert chosen.cases == [Case(10_000), Case(1_000_000), Case(25_000_000)] and chosen.iterations == 20
    assert chosen.systems == ["braid", "gloo", "openmpi"]


def test_a_system_of_training_keeps_its_commas():
    text = ",".join(
        [
            "braid:int4:block=128,rounding=stochastic",
            "gloo:bf16",
            "braid:hook=powersgd",
            "braid:dgc:ratio=0.01@momentum=0@learning-rate=0.1",
            "ssd-sgd:pull_every=5,local=sgd,force",
            "sharded:pull=bf16,overlap_forward",
            "cd-sgd:threshold=0.1",
            "diloco:8",
            "acco:pull=bf16",
        ]
    )
    int4, bf16, hook, dgc, ssd, sharded, cd, diloco, acco = systems.parse_list(text)
    assert (int4.backend, int4.codec, int4.hook) == ("braid", "int4:block=128,rounding=stochastic", "")
    assert (bf16.backend, bf16.codec, bf16.hook) == ("gloo", "", "bf16")
    assert (hook.backend, hook.codec, hook.hook) == ("braid", "", "powersgd")
    assert (dgc.codec, dgc.momentum, dgc.learning_rate) == ("dgc:ratio=0.01", 0.0, 0.1)
    assert (ssd.delay.pull_every, ssd.delay.local, ssd.is_forced, ssd.cycle_steps) == (5, "sgd", True, 5)
    assert (sharded.pull, sharded.overlaps_forward, sharded.overlaps_backward) == ("bf16", True, False)
    assert (cd.delay.threshold, cd.delay.warmup_steps, cd.cycle_steps) == (0.1, None, 5)
    assert (diloco.sync_every, diloco.cycle_steps) == (8, 8)
    assert (acco.kind, acco.pull, acco.cycle_steps, acco.is_delayed) == ("acco", "bf16", 2, False)
    assert [systems.parse(one).is_plain for one in ("braid", "gloo", "braid@momentum=0")] == [True, True, False]


def test_forced_divergence_is_no_objection_and_neither_is_training_without_momentum():
    assert systems.objection(systems.parse("ssd-sgd:pull_every=20,force"), 0.9) == ""
    unforced, own = systems.parse("ssd-sgd:pull_every=20"), systems.parse("ssd-sgd:pull_every=20@momentum=0")
    assert systems.objection(unforced, 0.0) == systems.objection(own, 0.9) == ""
    assert "diverges" in systems.objection(unforced, 0.9)


def test_a_codec_that_trainers_make_is_not_asked_of_braid():
    assert train.codec_objection("/no/such/braid-bench", systems.parse("braid:powersgd:rank=2")) == ""


def test_points_are_nodes_ranks_and_jobs():
    eight, ranks, jobs = scale.parse(["--points", "8,8x4,16x2x3"]).points
    assert (str(eight), str(ranks), str(jobs)) == ("8x1x1", "8x4x1", "16x2x3") and jobs.trainers == 96
