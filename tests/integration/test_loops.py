# SPDX-License-Identifier: Apache-2.0
"""What takes long is done beside the loops: a large result holds up neither its node nor other jobs."""

import pathlib

import pytest
from planned_training import ANY_GAIN
from real_cluster import SUM_FOREVER, end_running, needs_daemons, until, wait_until_running

pytestmark = [needs_daemons, pytest.mark.sanitized]

MEBIBYTES = 128
LARGE = """
with open_job(arena_bytes=(ARGUMENT + 2) << 20) as job:
    tensor = dynamic(job)
    mine = np.full(ARGUMENT << 18, RANK + 1, np.float32)
    wrong = 0
    for step in range(2):
        ticket = job.submit(tensor, step, mine)
        say("SUBMITTED")
        job.wait(ticket)
        got = np.frombuffer(job.result(ticket), np.float32)
        wrong += int((got != WORLD * (WORLD + 1) / 2).any())
        del got
        job.release(ticket)
    report(wrong=wrong)
"""

# Gradients that the daemons merge, as they plan.
PLANNED_FOREVER = """
import itertools
job = open_job()
tensors = job.register(
    [TensorSpec(f"layer{i}", DType.FLOAT32, 1000, backward_order=i, planned=True) for i in range(ARGUMENT)])
mine = np.ones(1000, np.float32)
for step in itertools.count():
    for ticket in [job.submit(tensor, step, mine) for tensor in tensors]:
        ended(job, ticket)
    if step == 0:
        say("RUNNING")
"""


def computed_ns(pid: int, thread: str) -> int:
    """What the threads of that name have computed."""
    sums = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == thread:
            sums += int((task / "schedstat").read_text().split()[0])
    return sums


def test_memory_for_a_large_result_comes_beside_the_loops(cluster_of):
    cluster = cluster_of(2)
    cluster.expect_healthy()
    before = [computed_ns(node.daemon_pid, "work") for node in cluster.nodes]
    others = cluster.start(SUM_FOREVER)
    wait_until_running(others)
    for trainer in cluster.start(LARGE, argument=MEBIBYTES):
        assert trainer.result()["wrong"] == 0
    # Making so many bytes zero takes a processor at least that long.
    for node, at_first in zip(cluster.nodes, before, strict=True):
        assert computed_ns(node.daemon_pid, "work") - at_first > 1_000_000, node.name
    for trainer in others:
        assert trainer.process.poll() is None, trainer.output()
        trainer.kill()


def test_a_trainer_that_dies_while_its_result_gets_memory(cluster_of):
    cluster = cluster_of(2)
    cluster.expect_healthy()
    before = cluster.settled_footprints()
    trainers = cluster.start(LARGE, argument=MEBIBYTES)
    for trainer in trainers:
        trainer.wait_for("SUBMITTED")
    trainers[1].kill()
    error = trainers[0].error()
    assert "rank 1" in error["text"], error
    cluster.expect_healthy()
    cluster.expect_footprints(before)


def test_plans_are_made_beside_the_loops(cluster_of):
    cluster = cluster_of(2, "plan.planner=exact", ANY_GAIN)
    cluster.expect_healthy()
    coordinator = cluster.nodes[0].daemon_pid
    before = computed_ns(coordinator, "plan")
    trainers = cluster.start(PLANNED_FOREVER, argument=200)
    wait_until_running(trainers)
    until(lambda: computed_ns(coordinator, "plan") > before, "a plan is made")
    end_running(trainers)
    cluster.expect_healthy()


def test_every_loop_says_how_often_it_was_held_up(cluster_of):
    node = cluster_of(2, "transport.io_threads=2").nodes[0]
    counters = node.status()["counters"]
    for loop in ("control", "io-1"):
        assert counters[f"braid_loop_long_rounds_total.{loop}"] >= 0
