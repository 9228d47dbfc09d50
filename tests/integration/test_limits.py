# SPDX-License-Identifier: Apache-2.0
"""Limits, and things that are not there: each with its own words; small ones that do no harm."""

import os
import socket
import subprocess

import pytest
from braid_build import BENCH, BRAIDCTL, EXAMPLE_TRAINER, ran
from real_cluster import SHORT_JOB, SUM_FOREVER, needs_daemons, wait_until_running
from second_user import NOBODY, needs_nobody, way_opened
from test_operations import Alone

pytestmark = [needs_daemons, pytest.mark.sanitized]

OPEN = "open_job(timeout=5).close()"
# A few times what /dev/shm is given below.
LARGE_JOB = """
with open_job() as job:
    got = ended(job, job.submit(dynamic(job), 0, np.full(3_000_000, RANK + 1, dtype=np.float32)))
    report(good=bool((np.frombuffer(got, np.float32) == WORLD * (WORLD + 1) / 2).all()))
"""
# ARGUMENT: braidctl, where results are given back. Their memory is free once the other node has acknowledged all, too,
# and no test may depend on how soon that is.
KEEP_RESULTS = """
import subprocess

def used_bytes():
    status = subprocess.check_output([ARGUMENT, "--socket", os.environ["BRAID_SOCKET"], "status", "--json"])
    [own] = [one for one in json.loads(status)["jobs"] if one["name"] == os.environ["BRAID_JOB"]]
    return own["result_memory_used_bytes"]

job = open_job()
tensor = dynamic(job)
for step in range(10):
    ticket = job.submit(tensor, step, np.ones(100_000, np.float32))
    job.wait(ticket)
    if ARGUMENT is not None:
        job.release(ticket)
        while used_bytes() > 0:
            time.sleep(0.01)
report(good=True)
"""


def test_without_a_daemon_the_error_names_the_socket(cluster_of, tmp_path):
    path = str(tmp_path / "braidd.sock")
    (trainer,) = cluster_of(1).start(OPEN, BRAID_SOCKET={0: path})
    error = trainer.error()
    assert error["error"] == "BRAID_ERROR_UNAVAILABLE", error
    assert f"there is no socket '{path}'" in error["text"], error


# Memory of a trainer's and of a daemon's is more than this.
FILE_BYTES = 1 << 20
BOUND = ["prlimit", f"--fsize={FILE_BYTES}"]


def test_a_limit_on_the_trainers_files_is_named(cluster_of):
    node = cluster_of(1).nodes[0]
    # In C: Python's interpreter ignores the signal that the kernel sends.
    done = ran(node.enter([*BOUND, EXAMPLE_TRAINER]), env={**os.environ, "BRAID_SOCKET": node.socket})
    assert done.returncode == 1, done
    assert f"process 'braid-example-trainer' may only make files of {FILE_BYTES} bytes" in done.stderr, done
    assert "ulimit -f unlimited" in done.stderr, done


def test_a_limit_on_the_daemons_files_is_named_to_trainers(tmp_path):
    with Alone(tmp_path, launcher=BOUND) as daemon:
        for _ in range(2):  # It goes on.
            done = ran([EXAMPLE_TRAINER], env={**os.environ, "BRAID_SOCKET": daemon.socket})
            assert done.returncode == 1, done
            assert f"process 'braidd' may only make files of {FILE_BYTES} bytes" in done.stderr, done
        assert daemon.process.poll() is None


def test_a_socket_of_a_dead_daemon_says_that_nobody_listens(cluster_of, tmp_path):
    path = str(tmp_path / "braidd.sock")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    (trainer,) = cluster_of(1).start(OPEN, BRAID_SOCKET={0: path})
    error = trainer.error()
    assert error["error"] == "BRAID_ERROR_UNAVAILABLE", error
    assert "nobody listens" in error["text"] and path in error["text"], error


@needs_nobody
def test_a_user_outside_of_the_group_is_told_which_group(cluster_of):
    cluster = cluster_of(1)
    node = cluster.nodes[0]
    with way_opened(node.socket):
        done = ran(
            node.enter([*NOBODY, BENCH, "all_reduce", "--sizes", "4"]),
            cwd="/", env={**os.environ, "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": node.address,
                 "BRAID_SOCKET": node.socket, "BRAID_JOB": "forbidden"},
        )  # fmt: skip
    assert done.returncode != 0
    assert f"this user may not open braidd's socket '{node.socket}'" in done.stderr, done.stderr
    assert "usermod -aG" in done.stderr
    cluster.expect_healthy()


def test_an_arena_larger_than_allowed_names_limit_and_key(cluster_of):
    cluster = cluster_of(1, "client.arena_bytes_max=8MiB")
    (trainer,) = cluster.start("open_job(arena_bytes=9 << 20)")
    error = trainer.error()
    assert error["error"] == "BRAID_ERROR_RESOURCE_EXHAUSTED", error
    assert str(9 << 20) in error["text"] and "client.arena_bytes_max" in error["text"], error
    for trainer in cluster.start(SHORT_JOB.replace("open_job()", "open_job(arena_bytes=8 << 20)")):
        assert trainer.result()["good"]


def test_a_job_that_needs_more_memory_registers_it(cluster_of):
    """What the first arena of 16 MiB has no room for lies in others, until the node allows no more."""
    source = """
job = open_job(arena_bytes=1 << 30)
tensor = dynamic(job)
first, second = (np.frombuffer(job.allocate(40 << 20).view(), np.float32)[:1000] for _ in range(2))
try:
    job.allocate(100 << 20)
except braid.BraidError as error:
    assert "client.arena_bytes_max" in str(error), error
    sums = []
    for step, memory in enumerate((first, second, first)):
        memory[:] = RANK + step
        got = np.frombuffer(ended(job, job.submit(tensor, step, memory)), np.float32)
        sums.append([float(got.min()), float(got.max())])
    report(sums=sums)
"""
    cluster = cluster_of(2, "client.arena_bytes_max=200MiB")
    for trainer in cluster.start(source):
        assert trainer.result()["sums"] == [[1, 1], [3, 3], [5, 5]]
    cluster.expect_healthy()


def test_results_that_are_not_given_back_end_with_the_key_to_raise(cluster_of):
    # What is given back a daemon sees with the next submission, or as soon as it polls.
    cluster = cluster_of(2, "debug.result_bytes_max=2MiB", "node.polling=always")
    for trainer in cluster.start(KEEP_RESULTS, argument=BRAIDCTL):
        assert trainer.result()["good"]
    for trainer in cluster.start(KEEP_RESULTS, argument=None):
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_RESOURCE_EXHAUSTED", error
        assert "client.arena_bytes_max" in error["text"], error
        assert "'stream' step" in error["text"], error
    cluster.expect_healthy()


def test_an_input_that_does_not_fit_the_arena_leaves_the_job_usable(cluster_of):
    source = """
job = open_job(arena_bytes=1 << 20)
tensor = dynamic(job)
try:
    job.submit(tensor, 0, np.zeros(1 << 20, np.float32))
except braid.BraidError as error:
    assert "arena_bytes" in str(error), error
    got = ended(job, job.submit(tensor, 0, np.ones(5, np.float32)))
    report(good=np.frombuffer(got, np.float32).tolist() == [WORLD] * 5)
"""
    for trainer in cluster_of(2, "debug.result_bytes_max=2MiB").start(source):
        assert trainer.result()["good"]


def test_more_jobs_than_allowed(cluster_of):
    cluster = cluster_of(1, "debug.jobs_max=1")
    running = cluster.start(SUM_FOREVER)
    wait_until_running(running)
    (refused,) = cluster.start(OPEN)
    error = refused.error()
    assert error["error"] == "BRAID_ERROR_RESOURCE_EXHAUSTED", error
    assert "1 jobs run on this node already" in error["text"], error
    running[0].kill()



def test_little_locked_memory_does_no_harm(cluster_of):
    cluster = cluster_of(1)
    for trainer in cluster.start(LARGE_JOB, nodes=[0, 0], prefix=["prlimit", "--memlock=65536"]):
        assert trainer.result()["good"]


def test_a_full_dev_shm_does_no_harm(cluster_of):
    full = "mount -t tmpfs -o size=64k tmpfs /dev/shm && { yes > /dev/shm/full; exec \"$@\"; }"
    shm = ["unshare", "-m", "sh", "-c", full, "sh"]
    if subprocess.run([*shm, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("mount namespaces are not allowed here")
    for trainer in cluster_of(1).start(LARGE_JOB, nodes=[0, 0], prefix=shm):
        assert trainer.result()["good"]
