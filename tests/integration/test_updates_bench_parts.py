# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/updates that need no cluster: arguments, formulas, figures, the tables."""

import subprocess

import pytest
from compare_tool import UPDATES
from updates_lib import figures, formulas, options, systems, table, traced

PATIENCE_S = 30


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["accuracy", "--systems", "mpi"], "'mpi' is none of sync, sharded, acco, od-sgd"),
        (["accuracy", "--systems", "diloco"], "'diloco' is none of"),
        (["accuracy", "--systems", "sync,sync"], "twice"),
        (["accuracy", "--systems", "od-sgd:pull_every=2"], "pull_every belongs to ssd-sgd"),
        (["accuracy", "--systems", "cd-sgd"], "cd-sgd needs a threshold above 0"),
        (["accuracy", "--systems", "sharded:pull=int8"], "'pull=int8' is none of pull=full, pull=bf16"),
        (["accuracy", "--systems", "sharded:overlap"], "pull=bf16, overlap_forward, overlap_backward"),
        (["accuracy", "--systems", "acco:pull=int8"], "'pull=int8' is none of pull=full, pull=bf16"),
        (["accuracy", "--systems", "acco:overlap_forward"], "'overlap_forward' is none of pull=full, pull=bf16"),
        (["accuracy", "--systems", "ssd-sgd:pull_every=3,local=sgd"], "diverges: pull every 2 steps or more often"),
        (["accuracy", "--systems", "diloco:30"], "--evaluate-every is no multiple"),
        (["accuracy", "--dataset", "cifar"], "invalid choice"),
        (["accuracy", "--learning-rate", "nan"], "not a number from"),
        (["steps", "--systems", "od-sgd,sync"], "the first system of steps is sync"),
        (["steps", "--communication", "0"], "'0' is not a number from"),
        (["steps", "--communication", "1,1"], "twice"),
        (["steps", "--trace", "/no/such/file"], "there is no file"),
        (["timeline"], "timeline needs --json FILE, which braid-plot draws"),
        (["timeline", "--json", "t.json", "--communication", "real"], "'real' is not a number from"),
    ],
)
def test_bad_arguments_are_told_before_anything_starts(arguments, complaint, capsys):
    with pytest.raises(SystemExit) as end:
        options.parse(arguments)
    assert end.value.code == 2 and complaint in capsys.readouterr().err


def test_a_build_that_is_missing_is_named(tmp_path):
    done = subprocess.run(
        [UPDATES, "steps", "--build", str(tmp_path)], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 2 and f"{tmp_path}/bin/braidd is missing" in done.stderr


def test_a_system_keeps_its_commas():
    text = "sync,ssd-sgd:pull_every=5,local=sgd,force,sharded:pull=bf16,overlap_forward,cd-sgd:threshold=0.1,diloco:8"
    sync, ssd, sharded, cd, diloco = systems.parse_list(text)
    assert sync.kind == "sync" and not sync.is_forced
    assert (ssd.delay.pull_every, ssd.delay.local, ssd.is_forced) == (5, "sgd", True)
    assert (sharded.pull, sharded.overlaps_forward) == ("bf16", True)
    assert (cd.delay.threshold, cd.delay.warmup_steps, cd.cycle_steps) == (0.1, None, 5)
    assert (diloco.sync_every, diloco.cycle_steps) == (8, 8)
    acco = systems.parse("acco:pull=bf16")
    assert (acco.kind, acco.pull, acco.cycle_steps, acco.is_delayed) == ("acco", "bf16", 2, False)
    assert systems.parse("od-sgd:warmup_steps=7").delay.warmup_steps == 7


def test_what_sharded_overlaps_is_an_option_of_its_own():
    both = "sharded:overlap_backward,overlap_forward"
    parsed = systems.parse_list(f"sharded,sharded:overlap_forward,{both},sharded:overlap_backward")
    overlaps = [(one.overlaps_forward, one.overlaps_backward) for one in parsed]
    assert overlaps == [(False, False), (True, False), (True, True), (False, True)]
    chosen = options.parse(["steps"]).systems
    assert [one.text for one in chosen[:3]] == ["sync", "sharded", both]


def test_forced_divergence_is_no_objection_and_neither_is_training_without_momentum():
    forced = systems.parse("ssd-sgd:pull_every=20,force")
    assert systems.objection(forced, 0.9) == ""
    unforced = systems.parse("ssd-sgd:pull_every=20")
    assert systems.objection(unforced, 0.0) == "" and "diverges" in systems.objection(unforced, 0.9)


@pytest.mark.parametrize(
    ("text", "bytes_of_an_element"),
    [
        ("sync", 8), ("sharded", 8), ("sharded:pull=bf16", 6), ("od-sgd", 8), ("od-sgd:pull=bf16", 6),
        ("acco", 8), ("acco:pull=bf16", 6),
        ("ssd-sgd:pull_every=5", 4.8), ("cd-sgd:threshold=1", 5), ("cd-sgd:threshold=1,pull=bf16", 3),
        ("cd-sgd:threshold=1,correction_every=1", 8), ("diloco:20", 0.4), ("local-sgd:4", 2),
    ],
)  # fmt: skip
def test_bytes_by_formula(text, bytes_of_an_element):
    sent = formulas.bytes_per_step(systems.parse(text), parameters=1000, nodes=4)
    assert sent == pytest.approx(750 * bytes_of_an_element)


def rank(losses, right, digest="same"):
    return {
        "losses": losses,
        "step_seconds": [1.0] * len(losses),
        "right": right,
        "test_pictures": 10,
        "digest": digest,
    }


def trained(losses=(2.0, 1.0), right=(3, 4), digests=("same", "same")):
    ranks = [rank(list(losses), [[1, 2], [2, right[i]]], digests[i]) for i in range(2)]
    return figures.of_training(1, ranks)


def outcome(*trainings, errors=()):
    row = figures.training_rows(
        {systems.parse("sync"): [trained()], systems.parse("od-sgd"): list(trainings)},
        dict.fromkeys(errors, "it broke"),
        2.0,
    )[1]
    return row["outcome"]


def test_ranks_add_up():
    one = trained()
    assert one["accuracy"] == 70 and one["losses"] == [2, 1] and one["ranks_agree"]
    assert one["evaluations"] == [{"steps": 1, "accuracy": 40}, {"steps": 2, "accuracy": 70}]


def test_outcomes():
    assert outcome(trained()) == "trains"
    assert outcome(trained(), trained(right=(3, 3))) == "worse"
    assert outcome(trained(losses=(1.0, float("inf")))) == "diverged"
    assert outcome(trained(), trained(losses=(1.0, 2.0))) == "diverged"
    assert outcome(trained(digests=("one", "other"))) == "ranks differ"
    assert outcome(trained(), errors=["od-sgd"]) == outcome() == "failed"


def turn(step_seconds, bytes_per_step):
    return figures.of_turn(
        [
            {
                "step_seconds": seconds, "pass_seconds": 0.1, "trainer_cpu_seconds": 0.1, "daemon_cpu_seconds": 0.3,
                "bytes_per_step": bytes_per_step, "machine_cpu_seconds": 2.0, "parameters": 1000,
            }
            for seconds in (step_seconds / 2, step_seconds)
        ]
    )  # fmt: skip


def rows_of_steps(compute_seconds=1.0):
    turns = {
        systems.parse("sync"): [turn(2.0, 6000)] * 3,
        systems.parse("od-sgd"): [turn(1.1, 6000)] * 2 + [turn(9.0, 6000)],
        systems.parse("cd-sgd:threshold=1"): [turn(1.0, 3750)],
        systems.parse("sharded"): [],
    }
    return figures.step_rows(turns, compute_seconds, communication_seconds=1.0, nodes=4)


def test_a_step_is_compared_with_that_of_sync_and_with_what_could_be_hidden():
    sync, delayed, narrow = rows_of_steps()
    assert (sync["to_sync"], sync["hidden"], sync["to_formula"]) == (1, 0, 1)
    assert sync["others"] == pytest.approx((2.0 - 2 * 0.4) / 2.0)
    assert delayed["step_seconds"] == 1.1 and delayed["to_sync"] == pytest.approx(0.55)
    assert delayed["hidden"] == pytest.approx(0.9) and delayed["to_longest"] == pytest.approx(1.1)
    # Its communication is shorter by as much as it sends less.
    assert narrow["hidden"] == pytest.approx(1) and narrow["to_longest"] == 1 and narrow["to_formula"] == 1


def test_of_real_computing_nobody_knows_what_could_be_hidden():
    rows = rows_of_steps(compute_seconds=None)
    assert [(row["hidden"], row["to_longest"]) for row in rows] == [(None, None)] * 3


def test_the_table_has_what_was_measured():
    row = figures.training_rows({systems.parse("sync"): [trained()], systems.parse("od-sgd"): []}, {}, 2.0)
    lines = table.accuracy_cells(row)
    assert lines[1] == ["sync", "70.00", "1.5000", "1.000 s", "0 of 1", "trains"]
    assert lines[2] == ["od-sgd", "-", "-", "-", "0 of 0", "failed"]


def event(track, name, begin, end=None, **arguments):
    """An event of the node's process, in microseconds."""
    times = {"ph": "i", "ts": begin} if end is None else {"ph": "X", "ts": begin, "dur": end - begin}
    return {"pid": 2, "tid": track, "name": name, "args": arguments, **times}


TRACKS = {1: "rank 0: trainer", 2: "operations", 3: "operations (2)", 4: "stream 0, I/O loop 0"}
EVENTS = [
    event(1, "step 7: backward", 0, 9), event(1, "layer1", 1.5), event(1, "layer0", 9),
    event(2, "layer1", 2, 30, bytes=8), event(2, "waits for other nodes", 2, 4), event(2, "barrier", 50, 51, bytes=0),
    event(3, "layer0", 9, 40.25, bytes=16), event(4, "layer1", 3, 30, bytes=8),
    {**event(2, "of another node", 1, 2, bytes=8), "pid": 1},
]  # fmt: skip


def traced_document():
    names = [(2, track, name) for track, name in TRACKS.items()] + [(1, 1, "rank 1: trainer"), (1, 2, "operations")]
    meta = [
        {"ph": "M", "name": "thread_name", "pid": process, "tid": track, "args": {"name": name}}
        for process, track, name in names
    ]
    return {"traceEvents": [*meta, *EVENTS], "otherData": {"begin_ns": 1000}}


def test_of_a_trace_that_is_read_which_is_of_rank_0s_gradients():
    seen = traced.read(traced_document())
    assert seen["gradients"] == [2500, 10_000]
    assert seen["operations"] == [[3000, 31_000, 8], [10_000, 41_250, 16]]


def test_the_picture_begins_with_the_first_step_and_ends_with_the_last():
    benchmarks = pytest.importorskip("braid.plot.benchmarks", reason="matplotlib is not installed")
    ms = 10**6
    steps = [
        [["forward", at, at + 2 * ms], ["backward", at + 2 * ms, at + 5 * ms], ["step()", at + 5 * ms, at + 10 * ms]]
        for at in (100 * ms, 110 * ms)
    ]
    part = {
        "system": "sharded",
        "computing": steps,
        "gradients": [99 * ms, 103 * ms, 103 * ms + 1, 121 * ms],
        "operations": [[90 * ms, 99 * ms, 1], [95 * ms, 101 * ms, 1], [104 * ms, 109 * ms, 1], [119 * ms, 130 * ms, 1]],
    }
    page = benchmarks.timeline({"parts": [part, {**part, "computing": steps[:1]}], "nodes": 4}, "")
    both, first = page.panels
    assert both.end == first.end == 20 and page.notes == ["4 nodes, rank 0"]

    def spans(name: str) -> list[tuple[float, float]]:
        return [(one.begin, one.end) for one in both.spans if one.name == name]

    assert spans("forward") == [(0, 2), (10, 12)] and spans("step()") == [(5, 10), (15, 20)]
    assert [begin for begin, _ in spans("gradient")] == [3]
    assert spans("group") == [(0, 1), (4, 9), (19, 20)]
