# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/train that need no cluster: arguments, figures, the table."""

import subprocess

import pytest
from compare_tool import TRAIN
from training_lib import figures, options, requirements, systems, table
from training_lib.blocks import block_sizes

PATIENCE_S = 30


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--systems", "mpi"], "'mpi' is none of braid, braid:CODEC"),
        (["--systems", "braid:"], "'braid:' is none of"),
        (["--systems", "gloo,gloo"], "twice"),
        (["--systems", "gloo:int8"], "a hook is one of fp16, bf16, powersgd"),
        (["--systems", "braid:hook="], "a hook is one of"),
        (["--systems", "braid@speed=2"], "after @ comes one of learning-rate"),
        (["--systems", "braid@momentum=1"], "'1' is not a number from 0"),
        (["--systems", "gloo", "--set", "tune.mode=off"], "braid is not among the systems"),
        (["--dataset", "cifar"], "invalid choice"),
        (["--seeds", "0"], "not a number from 1"),
        (["--learning-rate", "nan"], "'nan' is not a number from"),
        (["--target", "101"], "'101' is not a number from 0 to 100"),
        (["--steps", "9"], "not a number from 10"),
        (["--layers", "1"], "not a number from 2"),
        (["--dataset", "fashion-mnist", "--layers", "3"], "--layers is for the dataset digits"),
        (["--json", "/no/such/folder/file"], "no such folder"),
    ],
)
def test_bad_arguments_are_told_before_anything_starts(arguments, complaint, capsys):
    with pytest.raises(SystemExit) as end:
        options.parse(arguments)
    assert end.value.code == 2 and complaint in capsys.readouterr().err


def test_a_build_that_is_missing_is_named(tmp_path):
    done = subprocess.run(
        [TRAIN, "--build", str(tmp_path)], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 2 and f"{tmp_path}/bin/braidd is missing" in done.stderr


def test_data_that_are_missing_are_named(monkeypatch):
    monkeypatch.setitem(requirements.DATA, "digits", ("/no/digits", "run scripts/setup --digits"))
    with pytest.raises(requirements.CompareError, match="/no/digits is missing: run scripts/setup --digits"):
        requirements.check(options.parse(["--systems", "gloo"]))


def test_a_codec_that_trainers_make_is_not_asked_of_braid():
    assert requirements._objection("/no/such/braid-bench", systems.parse("braid:powersgd:rank=2")) == ""


def test_a_codec_keeps_its_commas():
    text = ",".join(
        [
            "braid:2bit:threshold=1,full-every=5",
            "braid:int4:block=128,rounding=stochastic",
            "gloo:bf16",
            "braid:dgc:ratio=0.01@momentum=0@learning-rate=0.1",
        ]
    )
    two_bit, int4, bf16, dgc = systems.parse_list(text)
    assert two_bit.codec == "2bit:threshold=1,full-every=5"
    assert (int4.backend, int4.codec, int4.hook) == ("braid", "int4:block=128,rounding=stochastic", "")
    assert (bf16.backend, bf16.codec, bf16.hook) == ("gloo", "", "bf16")
    assert (dgc.codec, dgc.momentum, dgc.learning_rate) == ("dgc:ratio=0.01", 0.0, 0.1)
    hook = systems.parse("braid:hook=powersgd")
    assert (hook.backend, hook.codec, hook.hook) == ("braid", "", "powersgd")
    assert [systems.parse(one).is_plain for one in ("braid", "gloo", "braid@momentum=0")] == [True, True, False]


def rank(number, losses, right):
    steps = len(losses)
    return {
        "rank": number,
        "losses": losses,
        "step_seconds": [1.0 + number] * steps,
        "synchronous_seconds": [0.75 + number] * len(block_sizes(steps)),
        "local_seconds": [0.5] * len(block_sizes(steps)),
        "bytes_sent": [100 * size for size in block_sizes(steps)],
        "right": right,
        "test_pictures": 10,
        "digest": "same",
    }


def trained(losses=(1.0,) * 12, right=(3, 4), seed=1, target=75):
    ranks = [rank(number, list(losses), [[5, 2], [12, right[number]]]) for number in range(2)]
    return figures.of_seed(seed, ranks, 1, target)


def test_the_slowest_rank_counts_and_ranks_add_up():
    one = trained(target=70)
    assert one["accuracy"] == 70 and one["loss"] == 1 and one["ranks_agree"]
    assert one["step_seconds"] == [2.0] * 12 and one["communication_seconds"] == [1.25] * 3
    assert one["bytes_per_step"] == [100.0] * 3
    assert (one["target_steps"], one["target_seconds"]) == (12, 24.0)
    assert trained(target=71)["target_seconds"] is None


def judged(*trainings, errors=(), baseline=70.0):
    plain = figures.row(systems.parse("gloo"), [trained()])
    plain["accuracy"] = baseline
    row = figures.row(systems.parse("gloo:bf16"), list(trainings))
    figures.judge([plain, row], {"gloo"}, dict.fromkeys(errors, "it broke"), 2.0)
    return row["outcome"]


def test_outcomes():
    assert judged(trained(), trained(seed=2)) == "trains"
    assert judged(trained(losses=[1.0] * 11 + [float("inf")])) == "diverged"
    assert judged(trained(), baseline=72.5) == "worse"
    assert judged({**trained(), "ranks_agree": False}) == "ranks differ"
    assert judged(trained(), errors=["gloo:bf16"]) == judged() == "failed"


def test_the_table_has_dashes_for_what_there_is_not():
    rows = [figures.row(systems.parse("gloo"), []), figures.row(systems.parse("braid"), [trained(), trained()])]
    lines = table.cells({"target": 95, "rows": rows})
    assert lines[1] == ["gloo", *["-"] * 7, "failed"]
    assert lines[2][1:5] == ["70.00 ± 0.00", "1.0000 ± 0.0000", "2.000 s", "1.250 s"]
    assert lines[2][5:] == ["100 B", "-", "-", "failed"]
    assert table._reason("it broke\nat f\nValueError: no\nat g") == "it broke: ValueError: no"


def test_the_target_counts_if_all_seeds_reach_it():
    gloo = systems.parse("gloo")
    row = figures.row(gloo, [trained(target=70), trained(seed=2, target=20)])
    assert (row["target_seconds"], row["target_steps"], row["target_reached"]) == (17.0, 8.5, 2)
    row = figures.row(gloo, [trained(target=70), trained(seed=2, target=80)])
    assert (row["target_seconds"], row["target_steps"], row["target_reached"]) == (None, None, 1)
