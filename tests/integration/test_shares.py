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
# Two groups in each step: a large one, and a small one that backward makes after it.
LARGE_THEN_SMALL = """
job = open_job()
large, small = job.register([
    TensorSpec("large", DType.FLOAT32, 2_000_000, backward_order=0, planned=True),
    TensorSpec("small", DType.FLOAT32, 50_000, backward_order=1, planned=True)])
mine = [np.full(count, RANK + 1, np.float32) for count in (2_000_000, 50_000)]
overtaken = wrong = 0
for step in range(ARGUMENT):
    first = job.submit(large, step, mine[0])
    second = job.submit(small, step, mine[1])
    got = [ended(job, second)]
    overtaken += int(not job.test(first))
    got.append(ended(job, first))
    for one in got:
        wrong += int((np.frombuffer(one, np.float32) != WORLD * (WORLD + 1) / 2).any())
job.close()
report(overtaken=overtaken, wrong=wrong)
"""
STEPS = 8


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


@pytest.mark.parametrize("streams", [1, 4])
def test_what_the_next_forward_pass_needs_first_goes_first(streams):
    settings = ["plan.planner=first", "collective.unit_bytes=1MiB", f"collective.streams={streams}"]
    with capped(3, *settings) as cluster:
        for trainer in cluster.start(LARGE_THEN_SMALL, argument=STEPS):
            result = trainer.result()
            assert result["wrong"] == 0
            assert result["overtaken"] > STEPS // 2, result
