# SPDX-License-Identifier: Apache-2.0
"""A plan follows the network: its caps are halved and restored under a running job."""

import re
import subprocess

import pytest
from braid_build import IS_SANITIZED
from cluster_tool import CLUSTER
from planned_training import changes_of
from real_cluster import Cluster, Trainer, needs_daemons, until, wait_until_running

pytestmark = [
    needs_daemons,
    pytest.mark.skipif(IS_SANITIZED, reason="the sanitizer would be slower than the network"),
]

STEPS_TO_FOLLOW = 26  # the second change must last for two reports
STEPS_OF_PEACE = 14  # two rounds of reports: the plan that holds has been measured
NIC_MBIT = 200

# An iteration takes 0.13 s of the network. ARGUMENT: the stop sign.
TRAIN = """
job = open_job()
tensors = job.register([TensorSpec(f"layer{i}", DType.FLOAT32, 50_000, backward_order=i, planned=True)
                        for i in range(12)])
sign = StopSign(job, ARGUMENT)
wrong = step = 0
while not sign.is_reached(step):
    say(f"STEP {step}")
    inputs = [np.full(50_000, RANK + step + i, np.float32) for i in range(12)]
    for i, ticket in enumerate([job.submit(t, step, x) for t, x in zip(tensors, inputs)]):
        got = np.frombuffer(ended(job, ticket), np.float32)
        wrong += int((got != WORLD * (step + i) + WORLD * (WORLD - 1) // 2).any())
    if step == 3:
        say("RUNNING")
    step += 1
job.close()
report(wrong=wrong, steps=step)
"""


def step_of(trainer: Trainer) -> int:
    return int(re.findall(r"^STEP (\d+)$", trainer.output(), re.M)[-1])


def set_nic(cluster: Cluster, mbit: int) -> None:
    subprocess.run([CLUSTER, "--set-caps", cluster.directory, "--nic-mbit", str(mbit)], check=True)


def test_a_plan_follows_the_network_and_sums_stay_exact(tmp_path):
    sign, job = tmp_path / "stop", "followed"
    # Nothing is planned while it tries settings; a plan that only predicts anew is told of in debug lines.
    with Cluster(3, ["tune.mode=off", "log.level=debug"]) as cluster:
        set_nic(cluster, NIC_MBIT)
        trainers = cluster.start(TRAIN, argument=str(sign), job=job)
        wait_until_running(trainers)
        first, node = trainers[0], cluster.nodes[0]
        until(lambda: changes_of(node, job), "the first plan")
        for mbit in (NIC_MBIT // 2, NIC_MBIT):
            peace_until = max(changes_of(node, job).values()) + STEPS_OF_PEACE
            until(lambda step=peace_until: step_of(first) >= step, f"step {peace_until}")
            changed_at = step_of(first)
            set_nic(cluster, mbit)
            until(lambda step=changed_at: max(changes_of(node, job).values()) > step, "a new plan")
            followed_at = min(s for s in changes_of(node, job).values() if s > changed_at)
            assert followed_at - changed_at <= STEPS_TO_FOLLOW, node.log()[-3000:]
        sign.with_suffix(".unfinished").write_text(str(step_of(first) + STEPS_OF_PEACE))
        sign.with_suffix(".unfinished").rename(sign)
        assert [trainer.result()["wrong"] for trainer in trainers] == [0, 0, 0]
        plans = [changes_of(one, job) for one in cluster.nodes]
        assert plans == [plans[0]] * 3
