# SPDX-License-Identifier: Apache-2.0
"""A job's settings are tuned while it trains: every sum is exact, and the next start knows more."""

import json
import pathlib
import re

import pytest
from braid_build import braidctl
from real_cluster import Cluster, Node, Trainer, needs_daemons, until, wait_until_running

pytestmark = needs_daemons

JOB = "tuned"
# As bad as can be; and few steps, for this is about what happens in them.
BAD = (
    "transport.flows_per_link=1", "collective.streams=1", "transport.chunk_bytes=64KiB",
    "debug.tune_steps=50",
)  # fmt: skip

# ARGUMENT: the stop sign. What is wrong is counted in each step.
TRAIN = """
job = open_job()
counts = [20_000 + 7 * i for i in range(10)]
tensors = job.register([TensorSpec(f"layer{i}", DType.FLOAT32, count, backward_order=i, planned=True)
                        for i, count in enumerate(counts)])
sign = StopSign(job, ARGUMENT)
wrong = step = 0
sha = hashlib.sha256()
while not sign.is_reached(step):
    inputs = [((np.arange(count) + i + step) % 64 + 4 * RANK).astype(np.float32)
              for i, count in enumerate(counts)]
    for i, ticket in enumerate([job.submit(t, step, x) for t, x in zip(tensors, inputs)]):
        got = ended(job, ticket)
        sha.update(got)
        expected = (np.arange(counts[i]) + i + step) % 64 * WORLD + 4 * (WORLD * (WORLD - 1) // 2)
        wrong += int((np.frombuffer(got, np.float32) != expected).any())
    if step == 3:
        say("RUNNING")
    step += 1
job.close()
report(wrong=wrong, steps=step, digest=sha.hexdigest())
"""


def tuning_of(node: Node) -> dict:
    answer = braidctl(node.socket, "tune", "--job", JOB, "--format", "json")
    assert answer.returncode == 0, answer.stderr
    (job,) = json.loads(answer.stdout)
    return job


def train(cluster: Cluster, sign: pathlib.Path) -> dict:
    """Until the coordinator's tuning has ended; what that says of it."""
    trainers = cluster.start(TRAIN, argument=str(sign), job=JOB)
    wait_until_running(trainers)
    node = cluster.nodes[0]

    def is_over() -> bool:
        for trainer in trainers:
            assert trainer.process.poll() is None, f"it ended early:\n{trainer.output()}"
        tunings = tuning_of(node)["tunings"]
        return bool(tunings) and all(tuning["state"] == "over" for tuning in tunings)

    until(is_over, "the tuning is over")
    job = tuning_of(node)
    (tuning,) = job["tunings"]
    assert job["is_coordinator"] and not tuning_of(cluster.nodes[1])["is_coordinator"]
    for one in cluster.nodes:
        until(
            lambda one=one: tuning_of(one)["settings"] == tuning["winner"],
            "all nodes have the winner's settings",
        )
    unfinished = sign.with_suffix(".unfinished")
    unfinished.write_text(str(tuning["last_step"] + 10))
    unfinished.rename(sign)
    expect_exact(trainers)
    return tuning


def expect_exact(trainers: list[Trainer]) -> None:
    results = [trainer.result() for trainer in trainers]
    assert [result["wrong"] for result in results] == [0] * len(results)
    assert len({json.dumps([result["steps"], result["digest"]]) for result in results}) == 1


def test_sums_are_exact_while_settings_are_tried_and_the_next_start_knows_them(tmp_path):
    state = tmp_path / "state"
    with Cluster(3, [*BAD, f"node.state_directory={state}"]) as cluster:
        first = train(cluster, tmp_path / "first")
        assert first["known"] is None
        assert first["trials"] and first["steps_measured"] >= 25
        tried = {json.dumps(trial["values"]) for trial in first["trials"]}
        assert len(tried) > 5, "settings were tried"
        log = cluster.nodes[0].log()
        assert re.search(rf"job '{JOB}': tuned in \d+ trials", log), log[-3000:]
        assert cluster.nodes[0].counter("braid_tune_trials_total") == len(first["trials"])

        (entry,) = json.loads((state / "tuning.json").read_text())["entries"]
        assert entry["values"] == first["winner"]
        assert entry["nodes"] == 3

        second = train(cluster, tmp_path / "second")
        assert second["known"]["is_same_job"]
        assert second["known"]["values"] == first["winner"]
        cluster.expect_healthy()


@pytest.mark.parametrize("how", ["off", "pinned"])
def test_what_the_operator_wants_to_stay_stays(tmp_path, how):
    sizes = "unit_bytes,chunk_bytes,window_bytes,direct_bytes,two_hops_bytes,halving_bytes"
    everything = f"flows_per_link,streams,{sizes},hierarchical"
    setting = "tune.mode=off" if how == "off" else f"debug.pin=[{everything}]"
    with Cluster(2, [*BAD, setting]) as cluster:
        sign = tmp_path / "stop"
        sign.write_text("40")
        trainers = cluster.start(TRAIN, argument=str(sign), job=JOB)
        wait_until_running(trainers)
        expect_exact(trainers)
        assert cluster.nodes[0].counter("braid_tune_trials_total") == 0
        assert cluster.nodes[0].counter("braid_tune_changes_total") == 0
