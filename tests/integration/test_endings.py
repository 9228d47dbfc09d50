# SPDX-License-Identifier: Apache-2.0
"""Trainers that end without closing their job: in order, with an exception, or by dying."""

import re

import pytest
from real_cluster import needs_daemons, wait_until_running

pytestmark = [needs_daemons, pytest.mark.sanitized]

# Rank 1 ends as ARGUMENT[0] says, while the others need it no more; they stay until the test has
# seen its end, ask the daemon whether the job is well, and end without closing it, too.
ENDS_EARLY = """
import ctypes
import multiprocessing

def join():
    job = open_job()
    ended(job, job.submit(dynamic(job), 0, np.ones(4, np.float32)))
    say("RUNNING")
    return job

def keep_open():
    globals()["kept"] = join()  # as a library that never closes what it opens

how, marker = ARGUMENT
if RANK != 1:
    job = join()
    while not os.path.exists(marker):
        time.sleep(0.05)
    dynamic(job, "later")
    report(well=True)
elif how == "child":
    child = multiprocessing.get_context("fork").Process(target=keep_open)
    child.start()
    child.join()
    sys.exit(child.exitcode)
elif how == "exception":
    keep_open()
    raise KeyError("of the script")
elif how == "exit":
    keep_open()
    sys.exit(5)
elif how == "C":
    keep_open()
    ctypes.CDLL(None).exit(0)  # the interpreter does nothing more
elif how == "_exit":
    keep_open()
    os._exit(0)
else:
    keep_open()
"""
# The others wait for what rank 1 never submits.
NEEDED = """
job = open_job()
stream = dynamic(job)
ended(job, job.submit(stream, 0, np.ones(4, np.float32)))
say("RUNNING")
if RANK == 1:
    if ARGUMENT == "exception":
        raise KeyError("of the script")
    if ARGUMENT == "by the daemon":
        job.register([braid.TensorSpec("odd", braid.DType.FLOAT32, 4, planned=True, codec="gzip")])
    if ARGUMENT == "by the library":
        job.register([braid.TensorSpec("odd", braid.DType.FLOAT32, 1 << 60)])
    if ARGUMENT == "in a with":
        with job:
            job.register([braid.TensorSpec("odd", braid.DType.FLOAT32, 1 << 60)])
else:
    ended(job, job.submit(stream, 1, np.ones(4, np.float32)))
"""
SUBMITS_LAST = """
job = open_job()
stream = dynamic(job)
ended(job, job.submit(stream, 0, np.ones(4, np.float32)))
for step in range(1, 1000):
    ticket = job.submit(stream, step, np.ones(4, np.float32))
    if RANK != 1:
        got = np.frombuffer(ended(job, ticket), np.float32)
report(good=True if RANK == 1 else bool((got == WORLD).all()))
"""


@pytest.mark.parametrize(
    ("how", "exit_code"), [("simply", 0), ("exit", 5), ("exception", 1), ("child", 0), ("C", 0)]
)
def test_a_rank_that_nobody_needs_any_more_may_just_end(cluster_of, tmp_path, how, exit_code):
    cluster = cluster_of(3)
    marker = tmp_path / "rank 1 has ended"
    trainers = cluster.start(ENDS_EARLY, argument=[how, str(marker)])
    wait_until_running(trainers)
    assert trainers[1].end() == exit_code, trainers[1].output()
    marker.touch()
    for trainer in (trainers[0], trainers[2]):
        assert trainer.result()["well"]
    cluster.settled_footprints()
    assert not any("lost rank" in node.log() for node in cluster.nodes)


def test_a_rank_that_ends_without_the_interpreter_is_lost(cluster_of, tmp_path):
    cluster = cluster_of(2)
    marker = tmp_path / "rank 1 has ended"
    trainers = cluster.start(ENDS_EARLY, argument=["_exit", str(marker)])
    # The other one may hear of it before it has its first result.
    assert trainers[1].end() == 0, trainers[1].output()
    marker.touch()
    assert "lost rank 1 on node 'node1'" in trainers[0].error()["text"]


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("simply", "its process has ended"),
        ("exception", "its process has ended with an uncaught KeyError"),
    ],
)
@pytest.mark.parametrize("placed", [[0, 1, 2], [0, 0]], ids=str)
def test_who_waits_for_a_rank_that_has_ended_is_told(cluster_of, placed, how, reason):
    cluster = cluster_of(3)
    trainers = cluster.start(NEEDED, nodes=placed, argument=how)
    for trainer in trainers:
        if trainer.rank != 1:
            error = trainer.error()
            assert f"rank 1 left the job ({reason})" in error["text"], error
            assert error["error"] == "BRAID_ERROR_JOB_FAILED"
    assert trainers[1].end() == (1 if how == "exception" else 0)
    cluster.expect_healthy()


@pytest.mark.parametrize(
    ("how", "began"),
    [
        ("by the daemon", "its process has ended; it was refused"),
        ("by the library", "its process has ended; it was refused"),
        ("in a with", "it has met InvalidArgumentError"),
    ],
)
def test_who_waits_for_a_rank_whose_arguments_were_refused_is_told_why(cluster_of, how, began):
    cluster = cluster_of(3)
    trainers = cluster.start(NEEDED, nodes=[0, 1], argument=how)
    error = trainers[0].error()
    refused = rf"rank 1 left the job \({began}: [^()]*tensor 'odd'"
    assert re.search(refused, error["text"]) and error["text"].count("'odd'") == 1, error
    assert "tensor 'odd'" in trainers[1].error()["text"]
    cluster.expect_healthy()


def test_what_a_rank_has_submitted_before_its_end_counts(cluster_of):
    cluster = cluster_of(3)
    for placed in ([0, 1, 2], [0, 0]):
        for trainer in cluster.start(SUBMITS_LAST, nodes=placed):
            assert trainer.result()["good"]
