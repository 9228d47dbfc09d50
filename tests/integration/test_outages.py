# SPDX-License-Identifier: Apache-2.0
"""The whole network of a node is gone for less than control.peer_timeout_ms: no job fails."""

import random
import signal
import time

import pytest
from real_cluster import SUM_FOREVER, end_running, needs_daemons, until, wait_until_running

pytestmark = [needs_daemons, pytest.mark.sanitized, pytest.mark.transports]

# Generous: what is tested is that an outage is no loss, and on a busy machine all takes longer.
PATIENT = ("control.peer_timeout_ms=60000",)
SUMS = """
job = open_job()
tensor = job.register([TensorSpec("weights", DType.FLOAT32, 1000)])[0]
mine = np.arange(1000, dtype=np.float32) + RANK
expected = np.arange(1000, dtype=np.float32) * WORLD + WORLD * (WORLD - 1) // 2
step = 0
say("RUNNING")
while True:
    got = np.frombuffer(ended(job, job.submit(tensor, step, mine)), dtype=np.float32)
    assert np.array_equal(got, expected), step
    say(f"STEP {step}")
    step += 1
    time.sleep(0.01)
"""


def steps(trainer) -> int:
    return trainer.output().count("STEP ")


def outage(node, seconds: float) -> None:
    node.run("ip", "link", "set", node.interface, "down")
    time.sleep(seconds)  # how long it is away is what these tests are about
    node.run("ip", "link", "set", node.interface, "up")


def until_the_next_sums(trainers) -> None:
    """Or until a trainer has ended: end_running() says why."""
    before = [steps(trainer) for trainer in trainers]
    until(
        lambda: all(
            steps(trainer) > count or trainer.process.poll() is not None
            for trainer, count in zip(trainers, before, strict=True)
        ),
        "the next sums",
    )


def test_a_job_outlives_outages(cluster_of):
    cluster = cluster_of(3, *PATIENT)
    trainers = cluster.start(SUMS)
    wait_until_running(trainers)
    for _ in range(3):
        outage(random.choice(cluster.nodes), random.uniform(0.3, 2.5))
        until_the_next_sums(trainers)
    end_running(trainers)
    for node in cluster.nodes:
        assert "is silent" not in node.log() and "has ended:" not in node.log()


@pytest.mark.plain
def test_a_job_outlives_an_outage_that_costs_it_every_flow(cluster_of):
    cluster = cluster_of(3, *PATIENT)
    trainers = cluster.start(SUMS)
    wait_until_running(trainers)
    # Flows are given up by then, and were opened again in vain for longer than a link may take to open.
    outage(cluster.nodes[1], 18)
    until_the_next_sums(trainers)
    end_running(trainers)


def test_a_killed_daemon_is_no_outage(cluster_of):
    cluster = cluster_of(3, *PATIENT)
    trainers = cluster.start(SUM_FOREVER)
    wait_until_running(trainers)
    cluster.nodes[1].signal(signal.SIGKILL)
    for trainer in (trainers[0], trainers[2]):
        text = trainer.error()["text"]
        assert "node 'node1'" in text, text
    # By what its kernel says, and not by silence.
    for node in (cluster.nodes[0], cluster.nodes[2]):
        until(lambda node=node: "has ended: its control connection broke" in node.log(), node.name)
        assert "and nobody listens at" in node.log()
