# SPDX-License-Identifier: Apache-2.0
"""What dies in the middle of a job: the others are told who and where, and soon; nothing stays."""

import random
import re
import signal
import time

import pytest
from real_cluster import SUM_FOREVER, Cluster, needs_daemons, until, wait_until_running

pytestmark = [needs_daemons, pytest.mark.sanitized, pytest.mark.transports]

PEER_TIMEOUT_S = 5  # control.peer_timeout_ms
# Holds everything that the trainer had open, as a data loader's worker does.
WITH_A_CHILD = """
job = open_job()
if os.fork() == 0:
    time.sleep(20)
    os._exit(0)
sum_forever(job)
"""
JOIN_ONLY = """
say("JOINING")
open_job(world_size=WORLD + 1)
"""
SUBMIT_ONE = """
job = open_job()
tensor = job.register([TensorSpec("layer1.bias", DType.FLOAT32, 4)])[0]
say("RUNNING")
if RANK == 1:
    job.close()
    report(left=True)
else:
    while not os.path.exists(ARGUMENT):
        time.sleep(0.02)
    ended(job, job.submit(tensor, 0, np.ones(4, np.float32)))
"""

# The last rank submits when it gets a signal.
WAIT_FOR_LATE = """
import signal
job = open_job()
tensor = dynamic(job)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
say("RUNNING")
if RANK == WORLD - 1:
    signal.sigwait([signal.SIGUSR1])
report(sum=int(np.frombuffer(ended(job, job.submit(tensor, 0, np.ones(4, np.float32))), np.float32)[0]))
"""


def expect_named(error: dict, rank: int, node: str) -> None:
    assert re.search(rf"\brank {rank}\b", error["text"]), error
    assert f"node '{node}'" in error["text"], error
    assert error["error"] == "BRAID_ERROR_JOB_FAILED", error


def kill_trainers_of(cluster: Cluster, source: str, placed: list[int]) -> None:
    """One trainer each of two jobs with these lines is killed; the others are told, and nothing stays."""
    cluster.expect_healthy(placed)  # opens the links of this shape, which stay
    before = cluster.settled_footprints()
    for victim in (0, len(placed) - 1):
        trainers = cluster.start(source, nodes=placed)
        wait_until_running(trainers)
        time.sleep(random.uniform(0, 0.2))  # at any moment
        trainers[victim].kill()
        for trainer in trainers:
            if trainer.rank != victim:
                expect_named(trainer.error(), victim, f"node{placed[victim]}")
    cluster.expect_healthy(placed)
    cluster.expect_footprints(before)


def kill_a_daemon_of(cluster: Cluster, source: str, victim: int) -> None:
    """All ranks of a job that runs these lines are told, and the daemon can come back."""
    trainers = cluster.start(source)
    wait_until_running(trainers)
    node = cluster.nodes[victim]
    node.signal(signal.SIGKILL)
    for trainer in trainers:
        error = trainer.error()
        if trainer.rank == victim:
            assert error["error"] == "BRAID_ERROR_UNAVAILABLE" and node.socket in error["text"], error
        else:
            assert f"node '{node.name}'" in error["text"], error
    node.restart()
    cluster.expect_healthy()


@pytest.mark.parametrize("placed", [[0, 1, 2], [0, 0, 0], [0, 0, 1, 1]], ids=str)
def test_a_killed_trainer_is_named_to_all_others(cluster_of, placed):
    kill_trainers_of(cluster_of(3), SUM_FOREVER, placed)


def test_a_trainer_killed_at_any_moment_of_its_start(cluster_of):
    cluster = cluster_of(3)
    cluster.expect_healthy()
    before = cluster.settled_footprints()
    for delay in (0.0, 0.1, 0.2, 0.3):
        trainers = cluster.start("open_job(timeout=2).close()\nsum_forever(open_job(timeout=2))")
        time.sleep(delay + random.uniform(0, 0.05))  # where its start is then is chance
        trainers[1].kill()
        for trainer in (trainers[0], trainers[2]):
            # Killed before it asked to join, it is a rank that never came.
            text = trainer.error()["text"]
            assert re.search(r"\brank (\d, )?1\b", text), text
    cluster.expect_healthy()
    cluster.expect_footprints(before)


def test_a_trainer_that_dies_while_its_job_forms(cluster_of):
    cluster = cluster_of(3)
    trainers = cluster.start(JOIN_ONLY, job="forming")
    joined = re.compile(r"job 'forming': rank . on node '.*' joined \(3 of 4\)")
    until(lambda: joined.search(cluster.nodes[0].log()) is not None, "three ranks joined")
    trainers[2].kill()
    for trainer in trainers[:2]:
        expect_named(trainer.error(), 2, "node2")
        assert "before the job began" in trainer.results()[-1]["text"]
    cluster.expect_healthy()


def test_a_forked_child_does_not_hide_the_death_of_its_parent(cluster_of):
    cluster = cluster_of(3)
    trainers = cluster.start(WITH_A_CHILD, argument=0)
    wait_until_running(trainers)
    trainers[1].kill()
    for trainer in (trainers[0], trainers[2]):
        expect_named(trainer.error(), 1, "node1")
    cluster.expect_healthy()


@pytest.mark.parametrize("placed", [[0, 1, 2], [0, 0]], ids=str)
def test_a_rank_that_leaves_early_is_named(cluster_of, tmp_path, placed):
    cluster, has_left = cluster_of(3), tmp_path / "rank 1 has left"
    trainers = cluster.start(SUBMIT_ONE, nodes=placed, argument=str(has_left))
    assert trainers[1].result()["left"]
    has_left.touch()
    for trainer in trainers:
        if trainer.rank != 1:
            error = trainer.error()
            assert "rank 1 left the job" in error["text"], error
            assert error["error"] == "BRAID_ERROR_JOB_FAILED"
    cluster.expect_healthy()


@pytest.mark.parametrize("victim", [0, 1], ids=["the coordinator", "another node"])
def test_a_killed_daemon_is_named_and_can_come_back(cluster_of, victim):
    kill_a_daemon_of(cluster_of(3), SUM_FOREVER, victim)


def test_a_stopped_daemon_is_lost_after_the_peer_timeout(cluster_of):
    cluster = cluster_of(3)
    trainers = cluster.start(SUM_FOREVER)
    wait_until_running(trainers)
    node = cluster.nodes[2]
    node.signal(signal.SIGSTOP)
    try:
        for trainer in trainers[:2]:
            error = trainer.error()
            assert "node 'node2'" in error["text"], error
    finally:
        node.signal(signal.SIGCONT)
    assert trainers[2].error()["text"]
    cluster.expect_healthy()


@pytest.mark.plain
def test_who_waits_is_told_that_the_own_daemon_is_stopped_and_goes_on_when_it_does(cluster_of):
    cluster = cluster_of(1)
    waiting, late = cluster.start(WAIT_FOR_LATE, nodes=[0, 0])
    node = cluster.nodes[0]
    for trainer in (waiting, late):
        trainer.wait_for("RUNNING")
    with node.stopped():
        waiting.wait_for("has not answered for")
        assert f"process {node.daemon_pid}" in waiting.output(), waiting.output()
        assert "answered" not in late.output(), "it does not wait"
    waiting.wait_for("answers again")
    late.process.send_signal(signal.SIGUSR1)
    for trainer in (waiting, late):
        assert trainer.result()["sum"] == 2
    cluster.expect_healthy()


@pytest.mark.plain
def test_a_network_that_is_gone_is_told_like_a_lost_node(cluster_of):
    cluster = cluster_of(3)
    trainers = cluster.start(SUM_FOREVER)
    wait_until_running(trainers)
    node = cluster.nodes[1]
    node.run("ip", "link", "set", node.interface, "down")
    try:
        for trainer in trainers:
            error = trainer.error()
            assert "node '" in error["text"], error
    finally:
        node.run("ip", "link", "set", node.interface, "up")
    cluster.expect_healthy()


def test_a_job_that_begins_just_after_its_network_came_back_runs(cluster_of):
    cluster = cluster_of(3)
    cluster.expect_healthy()  # all connections are open
    node = cluster.nodes[1]
    node.run("ip", "link", "set", node.interface, "down")
    try:
        # TCP sends again after 3, 6 and 12 s of silence: at first the old connections stay dead.
        time.sleep(PEER_TIMEOUT_S - 1)
    finally:
        node.run("ip", "link", "set", node.interface, "up")
    cluster.expect_healthy()


def test_the_coordinators_node_may_come_up_late_and_is_named_if_it_does_not(cluster_of):
    cluster = cluster_of(3)
    node = cluster.nodes[0]
    node.signal(signal.SIGKILL)
    until(lambda: not node.is_alive(), "the daemon is dead")
    # Else they are told of a coordinator that is lost, not of one that is not there.
    for other in cluster.nodes[1:]:
        until(lambda: all(peer["name"] != node.name for peer in other.status()["peers"]), "it is missed")
    there = {"MASTER_ADDR": node.address}
    for trainer in cluster.start("open_job(timeout=1)", nodes=[1, 2], environment=there):
        text = trainer.error()["text"]
        assert f"MASTER_ADDR {node.address}" in text, text
    join = "open_job(timeout=60).close()\nreport(good=True)"
    late = cluster.start(join, nodes=[1, 2], environment=there)
    time.sleep(1)  # nobody is there for a while: they look for it, and look again
    node.restart()
    for trainer in late:
        assert trainer.result()["good"]
