# SPDX-License-Identifier: Apache-2.0
"""What a running job's daemons measure and plan, as braidctl shows it, and braid-bench replay."""

import json
import pathlib
import re
import tempfile

import pytest
from braid_build import BENCH, BRAIDCTL, BRAIDD, PATIENCE_S, REPOSITORY, braidctl, ran
from cluster_tool import CLUSTER
from planned_training import ANY_GAIN, expect_changes, stop_after_a_change
from real_cluster import Cluster, needs_daemons, until

pytestmark = needs_daemons

TRACE = str(REPOSITORY / "traces" / "fashion_mnist_cnn_b32.json")
TENSORS = [f"layer{i}.weight" for i in range(12)]
KEYS = ["planner", "streams", "steps", "groups", "measured_seconds", "p99_seconds", "predicted_seconds", "ratio"]
# ARGUMENT: how many sets of planned tensors, and how many steps until it only stays open; None: until the stop sign.
TRAIN = """
sets, steps, sign = ARGUMENT
with open_job() as job:
    names = [f"layer{i}.weight" for i in range(12)]
    all_handles = [
        job.register([
            TensorSpec(f"{name}{which or ''}", DType.FLOAT32, 20_000 * (i + 1), backward_order=i, planned=True)
            for i, name in enumerate(names)
        ])
        for which in range(sets)
    ]
    sign = StopSign(job, sign) if sign else None
    step = 0
    while not sign.is_reached(step) if sign else step < steps:
        for handles in all_handles:
            tickets = []
            for i, handle in enumerate(handles):
                time.sleep(0.001)
                tickets.append(job.submit(handle, step, np.ones(20_000 * (i + 1), dtype=np.float32)))
            for ticket in tickets:
                ended(job, ticket)
        step += 1
    report(steps=step)
    say("RUNNING")
    time.sleep(600)
"""


def train(cluster: Cluster, job: str, sets: int, steps: int) -> None:
    for trainer in cluster.start(TRAIN, argument=[sets, steps, None], job=job):
        trainer.wait_for("RUNNING")


def train_until_planned(cluster: Cluster, job: str) -> int:
    """How many steps it took."""
    with tempfile.TemporaryDirectory() as folder:
        sign = pathlib.Path(folder) / "stop"
        trainers = cluster.start(TRAIN, argument=[1, None, str(sign)], job=job)
        stop_after_a_change(trainers, job, sign)
        for trainer in trainers:
            trainer.wait_for("RUNNING")
    steps = trainers[0].results()[-1]["steps"]
    expect_changes(cluster, [0, 1], job, steps)
    return steps


@pytest.fixture(scope="module")
def training():
    """Two nodes and three jobs: one that trains, one with two sets, and one that has just begun."""
    with Cluster(2, [ANY_GAIN]) as cluster:
        cluster.long_steps = train_until_planned(cluster, "long")
        train(cluster, "twice", 2, 4)
        train(cluster, "begun", 1, 1)
        yield cluster


def ask(cluster: Cluster, *arguments: str) -> str:
    done = braidctl(cluster.nodes[1].socket, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(cluster: Cluster, *arguments: str) -> str:
    done = braidctl(cluster.nodes[1].socket, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def test_the_plan_of_a_job_as_json(training):
    job = json.loads(ask(training, "plan", "--job", "long", "--format", "json"))
    assert job["job"] == "long"
    (live,) = job["sets"]
    assert sorted(name for group in live["groups"] for name in group) == sorted(TENSORS)
    assert live["steps_measured"] == training.long_steps and live["measured_iteration_seconds"] > 0
    assert live["plan"] > 0 and live["planner"] == "streams" and live["from_step"] > 6


def test_a_plan_is_drawn_and_its_cost_is_printed(training, tmp_path):
    planning = pytest.importorskip("braid.plot.planning", reason="matplotlib is not installed")
    told = json.loads(ask(training, "plan", "--job", "long", "--format", "json"))
    planning.live(told, "").save(tmp_path / "plan.svg")
    drawn = (tmp_path / "plan.svg").read_text()
    assert ">Job long<" in drawn and f"set 1: plan {told['sets'][0]['plan']} by streams" in drawn
    assert "STARTUP" in ask(training, "fit", "--job", "long")
    assert json.loads(ask(training, "fit", "--job", "long", "--json"))["bands"]


def test_a_running_job_is_advised(training):
    codecs = ["--codecs", "bf16,topk:ratio=0.1"]
    done = braidctl(training.nodes[1].socket, "advise", "--job", "long", *codecs)
    if "by the fitted cost more bytes take no more time" in done.stderr:
        pytest.skip("this machine was too busy while the job was measured: it saw no cost of bytes")
    advice = json.loads(ask(training, "advise", "--job", "long", *codecs, "--format", "json"))
    assert [row["codec"] for row in advice["rows"]] == ["none", "bf16", "topk:ratio=0.1"]
    assert advice["nodes"] == 2 and advice["measured_step_seconds"] > 0 and advice["wire_bits_per_second"] > 0
    names = [name for group in advice["groups"] for name in group["tensors"]]
    assert sorted(names) == sorted(TENSORS)
    table = ask(training, "advise", "--job", "long", *codecs, "--encode-threads", "0.5", "--planner", "ddp")
    assert "long on 2 nodes" in table and "planner ddp, streams: 4" in table and "threads that encode: 0.5" in table
    assert re.search(r"without a codec a step takes .* by prediction, .* as measured", table)


def test_what_cannot_be_advised_says_why(training):
    assert "nothing is measured yet: 1 steps are complete" in refused(training, "advise", "--job", "begun")
    assert "has 2 sets of planned tensors" in refused(training, "advise", "--job", "twice")
    assert "no cost is fitted yet: 4 steps" in refused(training, "advise", "--job", "twice", "--set", "1")
    assert "no job 'lost' runs on this node" in refused(training, "advise", "--job", "lost")


def test_a_recorded_trace_is_planned_and_simulated(training, tmp_path):
    path = tmp_path / "long.json"
    assert "12 tensors" in ask(training, "trace", "record", "--job", "long", "-o", str(path))
    trace = json.loads(path.read_text())
    assert trace["model"] == "long"
    assert sorted(trace["names"]) == sorted(TENSORS)
    assert trace == json.loads(ask(training, "trace", "record", "--job", "long"))
    # The first tensor that is ready is the last layer's; between two there is a millisecond.
    assert trace["names"][-1] == TENSORS[0] and sum(trace["tb"]) > 0.01
    for arguments in (
        ["plan", "--planner", "exact", "--startup", "1e-4", "--per-byte", "1e-9"],
        ["simulate", "--algorithm", "ring", "--alpha", "1e-5", "--beta", "1e-9", "--workers", "4,8"],
    ):
        done = ran([BRAIDCTL, *arguments, "--trace", str(path)])
        assert done.returncode == 0, done.stderr


def test_what_cannot_be_answered_says_why(training, tmp_path):
    for command in (["plan"], ["fit"], ["trace", "record"]):
        said = refused(training, *command, "--job", "lost")
        assert "no job 'lost' runs on this node; there are 'begun', 'long', 'twice'" in said
    assert "nothing is measured yet: 1 steps are complete" in refused(training, "trace", "record", "--job", "begun")
    assert "no cost is fitted yet" in refused(training, "fit", "--job", "begun")
    (begun,) = json.loads(ask(training, "plan", "--job", "begun", "--format", "json"))["sets"]
    assert begun["step"] is None, "nothing is predicted"
    said = refused(training, "trace", "record", "--job", "twice")
    assert "2 sets of planned tensors" in said and "'layer11.weight1'" in said and "--set" in said
    assert "has no set 3" in refused(training, "plan", "--job", "twice", "--set", "3")
    nowhere = str(tmp_path / "no" / "trace.json")
    said = refused(training, "trace", "record", "--job", "long", "-o", nowhere)
    assert f"{nowhere}: cannot be written: No such file" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan", "--job", "a", "--trace", "t.json"], "--trace excludes --job"),
        (["plan", "--set", "1"], "--set requires --job"),
        (["plan", "--job", "a", "--set", "0"], "--set: '0' does not fit"),
        (["trace", "--steps", "65"], "--steps"),
        (["trace", "record"], "--job is required"),
    ],
)
def test_mistakes_on_the_command_line_end_with_2(arguments, said):
    done = ran([BRAIDCTL, *arguments])
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def replay(*arguments: str, nodes: int = 2, ranks_per_node: int = 1, settings: tuple = (), ends: int = 0) -> str:
    done = ran(
        [
            CLUSTER, "--nodes", str(nodes), "--ranks-per-node", str(ranks_per_node),
            "--daemon", BRAIDD, "--timeout", str(PATIENCE_S),
            *[part for setting in settings for part in ("--set", setting)],
            "--", BENCH, "replay", *arguments,
        ],
        timeout=PATIENCE_S + 30,
    )  # fmt: skip
    assert done.returncode == ends, done.stdout + done.stderr
    return done.stdout if ends == 0 else done.stderr


def test_planners_take_turns_in_a_replay(tmp_path):
    saved = tmp_path / "cost.json"
    arguments = ["--trace", TRACE, "--planner", "wfbp,exact,live", "--steps", "12"]
    lines = replay(*arguments, "--json", "--save-cost", str(saved))
    results = [json.loads(line.removeprefix("[0] ")) for line in lines.splitlines()]
    assert [one["planner"] for one in results] == ["wfbp", "exact", "live"]
    for one in results:
        assert list(one)[:8] == KEYS
        assert (one["streams"], one["steps"], one["base"]) == (4, 12, "wfbp")
        assert 1 <= one["groups"] <= 8
        assert one["measured_seconds"] > 0 and one["predicted_seconds"] > 0
        assert one["ratio"] == pytest.approx(one["measured_seconds"] / one["predicted_seconds"])
    assert results[0]["groups"] == 8 and results[0]["paired_ratio"] == 1
    assert results[2]["plan"] >= 0
    assert json.loads(saved.read_text())["bands"]


def test_a_replay_with_a_given_cost_on_nodes_with_several_ranks(tmp_path):
    cost = tmp_path / "cost.json"
    band = {"bytes_min": 1000, "bytes_max": 10**8, "startup_seconds": 1e-3, "seconds_per_byte": 1e-9}
    cost.write_text(json.dumps({"bands": [band]}))
    arguments = ["--trace", TRACE, "--planner", "single", "--steps", "2", "--cost", str(cost), "--json"]
    lines = replay(*arguments, "--time-scale", "0.5", "--forward", "0.25", ranks_per_node=2)
    (one,) = [json.loads(line.removeprefix("[0] ")) for line in lines.splitlines()]
    backward = sum(json.loads(pathlib.Path(TRACE).read_text())["tb"]) * 0.5
    # One message of 13 MB after the whole backward pass.
    assert one["predicted_seconds"] == pytest.approx(0.25 + backward + 1e-3 + 12_988_200e-9, rel=1e-3)
    assert one["measured_seconds"] > 0.25 + backward
    assert "base" not in one and list(one) == [*KEYS, "iteration_seconds"]


def test_a_replay_with_a_codec(tmp_path):
    lines = replay("--trace", TRACE, "--planner", "live", "--codec", "int8", "--steps", "5", "--json")
    (result,) = [json.loads(line.partition("] ")[2]) for line in lines.splitlines() if "measured_seconds" in line]
    assert result["planner"] == "live" and result["steps"] == 5
    assert result["iteration_seconds"] > 0
    assert "predicted_seconds" not in result, "a plain cost says nothing of it"
    mixed = tmp_path / "t.json"
    mixed.write_text(json.dumps({"names": ["a"], "numel": [9], "tb": [0.1], "dtype": "bfloat16"}))
    said = replay("--trace", str(mixed), "--planner", "live", "--codec", "int8", "--steps", "5", nodes=1, ends=1)
    assert "'a' is bfloat16; codecs encode float32 alone" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--trace is required"),
        (["--planner", "best"], "--planner: no planner is named 'best'; there are live, wfbp, "),
        (["--steps", "0"], "--steps"),
        (["--time-scale", "nan"], "--time-scale"),
        (["--forward", "-1"], "--forward: '-1' does not fit; right is a number from 0"),
        (["--cost", "c", "--save-cost", "d"], "--cost excludes --save-cost"),
        (["--codec", "int8"], "--codec: only the gradients of --planner live have one"),
    ],
)
def test_mistakes_of_a_replay_name_the_option(arguments, said):
    defaults = {"--trace": TRACE, "--planner": "wfbp", "--steps": "1"} if arguments else {}
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    line = [part for pair in {**defaults, **given}.items() for part in pair]
    done = ran([BENCH, "replay", *line])
    assert done.returncode != 0 and done.stdout == ""
    assert said in done.stderr
