# SPDX-License-Identifier: Apache-2.0
"""Inputs without pages: the daemon makes them when it reads, so they count as the user's who submits them."""

import os
import pathlib

import pytest
from real_cluster import SHORT_JOB, SUM_FOREVER, needs_daemons, until, wait_until_running
from second_user import GROUP_SETTING, NOBODY_UID, needs_nobody, start_neighbour, way_opened
from single_daemon import SingleDaemon

pytestmark = needs_daemons

MIB = 1 << 20
MAKE_HOLES = """
import ctypes
MADV_REMOVE = 9

def make_holes(memory):
    # libbraid has made the pages.
    first = -(-memory.address // 4096) * 4096
    length = (memory.address + memory.nbytes) // 4096 * 4096 - first
    assert ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(length), MADV_REMOVE) == 0
"""
# Sums of inputs without pages, each from another place of the arena. Waits at the end, with all of them.
READ_HOLES = MAKE_HOLES + """
count = ARGUMENT["bytes"] // 4
job = open_job("sparse", arena_bytes=ARGUMENT["times"] * ARGUMENT["bytes"] + (17 << 20))
first = job.allocate(16 << 20)  # all of the first arena, in which there are no holes
tensor = job.register([braid.TensorSpec("stream", dynamic=True)])[0]
for step in range(ARGUMENT["times"]):
    memory = job.allocate(ARGUMENT["bytes"])
    make_holes(memory)
    ticket = job.submit(tensor, step, memory, dtype=braid.DType.FLOAT32, count=count)
    job.wait(ticket)
    job.release(ticket)
    report(steps=step + 1)
time.sleep(600)
"""


@needs_nobody
def test_holes_count_as_their_users_and_other_jobs_go_on(cluster_of):
    cluster = cluster_of(1, GROUP_SETTING, "client.user_result_bytes_max=96MiB")
    node = cluster.nodes[0]

    def steps_of_innocents() -> int:
        return next(job["steps_done"] for job in node.status()["jobs"] if job["name"] == "innocent")

    with way_opened(node.socket):
        innocents = cluster.start(SUM_FOREVER, job="innocent")
        wait_until_running(innocents)
        modest = start_neighbour(cluster, READ_HOLES, {"bytes": 16 * MIB, "times": 2})
        until(lambda: {"steps": 2} in modest.results(), "so much is allowed")
        greedy = start_neighbour(cluster, READ_HOLES.replace("sparse", "more"), {"bytes": 16 * MIB, "times": 8})
        greedy.end()
        *done, error = greedy.results()
        assert done == [{"steps": 1}]  # results count as well, of both jobs
        assert error["error"] == "BRAID_ERROR_RESOURCE_EXHAUSTED"
        for part in (
            f" of the {16 * MIB} bytes", "never written", f"user {NOBODY_UID}", f"the {96 * MIB} that",
            "client.user_result_bytes_max",
        ):  # fmt: skip
            assert part in error["text"], error
        steps = steps_of_innocents()
        until(lambda: steps_of_innocents() > steps, "the innocents' job goes on")
        for trainer in (*innocents, modest):
            assert trainer.process.poll() is None
            trainer.kill()


@pytest.fixture
def small_group():
    """The folder of a new control group with 256 MiB of memory."""
    hierarchy = pathlib.Path("/sys/fs/cgroup")
    limit = "memory.max"
    if (hierarchy / "memory").is_dir():
        hierarchy, limit = hierarchy / "memory", "memory.limit_in_bytes"
    group = hierarchy / f"braid-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(256 * MIB))
    except OSError as error:
        pytest.skip(f"control groups with a limit of memory cannot be made here: {error}")
    yield group
    until(lambda: not (group / "cgroup.procs").read_text(), "all its processes have ended")
    group.rmdir()


# Keeps all arenas, whatever becomes of their jobs.
READ_HOLES_AND_STAY = MAKE_HOLES + """
count = ARGUMENT["bytes"] // 4
errors = []
jobs = []
for number in range(ARGUMENT["jobs"]):
    job = open_job(f"sparse {number}", arena_bytes=ARGUMENT["times"] * ARGUMENT["bytes"] + (17 << 20))
    jobs.append((job, job.allocate(16 << 20)))  # all of the first arena, in which there are no holes
    tensor = dynamic(job)
    try:
        for step in range(ARGUMENT["times"]):
            memory = job.allocate(ARGUMENT["bytes"])
            make_holes(memory)
            ticket = job.submit(tensor, step, memory, dtype=DType.FLOAT32, count=count)
            job.wait(ticket)
            job.release(ticket)
    except braid.BraidError as error:
        errors.append(str(error))
report(errors=errors)
"""


def test_a_daemon_with_little_memory_is_not_killed(small_group):
    into_group = ["sh", "-c", f'echo $$ > {small_group}/cgroup.procs && exec "$@"', "sh"]
    with SingleDaemon(prefix=into_group) as daemon:
        argument = {"bytes": 16 * MIB, "times": 32, "jobs": 3}  # half a gigabyte each
        (greedy,) = daemon.start(READ_HOLES_AND_STAY, argument=argument)
        errors = greedy.result()["errors"]
        assert len(errors) == 3
        for error in errors:
            assert "collective.result_memory_max" in error, error
        assert "never written" in errors[0]
        assert daemon.process.poll() is None
        (innocent,) = daemon.start(SHORT_JOB)
        assert innocent.result()["good"]
