# SPDX-License-Identifier: Apache-2.0
"""What jobs, and the operations of a job, get of a network that is too slow for all of them."""

import subprocess

import pytest
from braid_build import IS_SANITIZED
from cluster_tool import CLUSTER
from real_cluster import Cluster, Node, needs_daemons, until, wait_until_running

pytestmark = [
    needs_daemons,
    pytest.mark.skipif(IS_SANITIZED, reason="the sanitizer would be slower than the network"),
]

NIC_MBIT = 200
# Always has something to send: 16 MB in four operations. Ends when it is killed.
BUSY = """
job = open_job()
tensor, step, tickets = dynamic(job), 0, []
mine = np.full(1_000_000, RANK + 1, np.float32)
while True:
    tickets.append(job.submit(tensor, step, mine))
    step += 1
    if len(tickets) < 4:
        continue
    got = np.frombuffer(ended(job, tickets.pop(0)), np.float32)
    assert (got == WORLD * (WORLD + 1) / 2).all()
    if step == 8:
        say("RUNNING")
"""
MEASURED_BYTES = 60_000_000


def capped(nodes: int, *settings: str) -> Cluster:
    cluster = Cluster(nodes, settings)
    caps = ["--set-caps", cluster.directory, "--nic-mbit", str(NIC_MBIT)]
    subprocess.run([CLUSTER, *caps], check=True)
    return cluster


def carried(node: Node) -> dict[str, int]:
    return {job["name"]: job["bytes"] for job in node.status()["jobs"]}


def test_jobs_share_a_network_in_proportion_to_their_weights():
    with capped(2) as cluster:
        trainers = [
            trainer
            for job, weight in [("light", "1"), ("heavy", "3")]
            for trainer in cluster.start(BUSY, job=job, environment={"BRAID_JOB_WEIGHT": weight})
        ]
        wait_until_running(trainers)
        before = carried(cluster.nodes[0])
        enough = sum(before.values()) + MEASURED_BYTES
        until(lambda: sum(carried(cluster.nodes[0]).values()) > enough, "bytes were carried")
        after = carried(cluster.nodes[0])
        light, heavy = (after[job] - before[job] for job in ("light", "heavy"))
        assert heavy / light > 1.8, (light, heavy)
