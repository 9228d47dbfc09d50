# SPDX-License-Identifier: Apache-2.0
"""Open jobs that do nothing cost next to nothing."""

import pathlib
import re
import time

import pytest
from braid_build import IS_SANITIZED
from real_cluster import needs_daemons, wait_until_running

pytestmark = needs_daemons

# Nine are usual: signs of life to and from two peers, twice a second each. A timer of 20 ms would reach it, and so
# would threads that keep waking each other. It counts what the daemon does, not how long that takes, so it holds on
# a machine that is slow or busy.
WAKE_UPS_PER_SECOND_MAX = 50
MEASURED_S = 4
LOOKS = 20
IDLE = """
job = open_job()
ended(job, job.submit(dynamic(job), 0, np.ones(1000, np.float32)))
say("RUNNING")
time.sleep(600)
"""


def wake_ups(pid: int) -> int:
    """How often the process's threads have waited for something, and it came."""
    statuses = [path.read_text() for path in pathlib.Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.M)[1]) for text in statuses)


def awake_threads(pid: int) -> set[str]:
    """Those of the process that compute or want to."""
    awake = set()
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
        if path.read_text().rpartition(")")[2].split()[0] == "R":
            awake.add(path.parent.name)
    return awake


@pytest.mark.skipif(IS_SANITIZED, reason="what a sanitizer costs says nothing about braidd")
def test_daemons_with_open_jobs_that_do_nothing(cluster_of):
    cluster = cluster_of(3)
    wait_until_running(cluster.start(IDLE) + cluster.start(IDLE, nodes=[0, 0, 1]))
    time.sleep(0.5)  # what was begun may end; whatever goes on is counted below
    pids = [node.daemon_pid for node in cluster.nodes]
    # A thread that never sleeps wakes up never, and is awake whenever one looks.
    always_awake = {pid: awake_threads(pid) for pid in pids}
    before = [wake_ups(pid) for pid in pids]
    start = time.monotonic()
    for _ in range(LOOKS):
        time.sleep(MEASURED_S / LOOKS)
        for pid in pids:
            always_awake[pid] &= awake_threads(pid)
    after = [wake_ups(pid) for pid in pids]
    passed = time.monotonic() - start
    for woke, woke_before in zip(after, before, strict=True):
        assert (woke - woke_before) / passed < WAKE_UPS_PER_SECOND_MAX
    assert not any(always_awake.values()), always_awake
