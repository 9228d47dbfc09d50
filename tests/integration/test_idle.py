# SPDX-License-Identifier: Apache-2.0
"""Open jobs that do nothing cost next to nothing."""

import os
import pathlib
import time

import pytest
from braid_build import IS_SANITIZED
from real_cluster import needs_daemons, wait_until_running

pytestmark = needs_daemons

CORE_SHARE_MAX = 0.005
MEASURED_S = 4.5
ATTEMPTS = 3  # another process may take the machine's caches away
IDLE = """
job = open_job()
ended(job, job.submit(dynamic(job), 0, np.ones(1000, np.float32)))
say("RUNNING")
time.sleep(600)
"""


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(IS_SANITIZED, reason="what a sanitizer costs says nothing about braidd")
def test_daemons_with_open_jobs_that_do_nothing(cluster_of):
    cluster = cluster_of(3)
    wait_until_running(cluster.start(IDLE) + cluster.start(IDLE, nodes=[0, 0, 1]))
    shares = []
    for _ in range(ATTEMPTS):
        time.sleep(0.5)
        before = [cpu_seconds(node.daemon_pid) for node in cluster.nodes]
        start = time.monotonic()
        time.sleep(MEASURED_S)
        passed = time.monotonic() - start
        shares = [
            (cpu_seconds(node.daemon_pid) - was) / passed
            for node, was in zip(cluster.nodes, before, strict=True)
        ]
        if max(shares) < CORE_SHARE_MAX:
            return
    raise AssertionError(f"shares of a core: {shares}")
