# SPDX-License-Identifier: Apache-2.0
"""The command lines of bench/compare, train, steps, kfac and scale, and what they need."""


import bench_tools
import pytest
from braid_build import ran
from measure import needs
from measure.compare import options as compare
from measure.compare.main import Comparison
from measure.scale import main as scale
from measure.training import kfac_steps, steps, systems, train

PARSERS = {
    "compare": compare.parse, "train": train.parse, "steps": steps.parse, "kfac": kfac_steps.parse,
    "scale": scale.parse,
}  # fmt: skip


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("compare --sizes 10", "--sizes"),
        ("compare --systems braid,nccl", "'nccl'"),
        ("compare --flow-mbit 50,fast", "--flow-mbit"),
        ("compare --delay-ms 1 --jitter-ms 2", "--jitter-ms"),
        ("compare --systems gloo --set a=b", "--set"),
        ("compare --through torch --nodes 64 --ranks-per-node 5", "320 ranks"),
        ("compare --before /no/such/checkout", "/no/such/checkout"),
        ("train --systems mpi", "'mpi'"),
        ("train --systems gloo:int8", "a hook is one of"),
        ("train --systems braid@speed=2", "learning-rate"),
        ("train --systems od-sgd:pull_every=2", "pull_every"),
        ("train --systems ssd-sgd:pull_every=3,local=sgd", "diverges"),
        ("train --systems diloco:30", "--evaluate-every"),
        ("train --systems kfac:mode=x", "'x' is none of spd, mpd, d, dp"),
        ("train --systems kfac:speed=1", "'speed' is none of mode, compute_method"),
        ("train --systems kfac:inv_update_steps=0", "'0' is no number of steps"),
        ("train --systems muon:sgd=1", "'sgd' is not adamw"),
        ("train --systems adamw:1", "'adamw:1' is none of"),
        ("train --evaluate-every 7", "--evaluate-every"),
        ("steps --systems od-sgd,braid", "--systems"),
        ("steps --timeline --communication 1", "--json"),
        ("steps --systems braid,muon", "muon: the model has no layers for it"),
        ("kfac --width 1", "--width"),
        ("kfac --nodes 1", "--nodes"),
        ("scale --points 8x1x1x1", "'8x1x1x1'"),
        ("scale --points 128x16", "2048"),
        ("scale --trace /no/such/trace", "/no/such/trace"),
    ],
)
def test_bad_arguments_are_told_before_anything_starts(line, named, capsys):
    command, *arguments = line.split()
    with pytest.raises(SystemExit) as end:
        PARSERS[command](arguments)
    assert end.value.code == 2 and named in capsys.readouterr().err


@pytest.mark.parametrize("command", ["COMPARE", "KFAC", "SCALE", "STEPS", "TRAIN"])
def test_a_build_that_is_missing_is_named(command, tmp_path):
    done = ran([getattr(bench_tools, command), "--build", str(tmp_path)])
    assert done.returncode == 2 and f"{tmp_path}/bin/braidd is missing" in done.stderr and done.stdout == ""


def test_what_is_not_installed_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(needs.shutil, "which", lambda _: None)
    monkeypatch.setattr(needs, "has_module", lambda *_: False)
    said = "; ".join(Comparison(compare.parse(["--systems", "gloo,openmpi,mpich"])).missing())
    for named in ("apt-get install iperf3", "openmpi-bin python3-mpi4py python3-numpy", "--peer mpich", "torch"):
        assert named in said


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
