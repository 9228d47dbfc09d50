# SPDX-License-Identifier: Apache-2.0
"""A trainer with very many tensors: they all work, and nobody waits for their registration."""

import pytest
from braid_build import IS_SANITIZED
from real_cluster import SUM_FOREVER, end_running, needs_daemons, wait_until_running

pytestmark = [needs_daemons, pytest.mark.sanitized]

# A sanitizer makes each of them ten times as slow.
TENSORS = 50_000 if IS_SANITIZED else 300_000
MANY = """
job = open_job()
specs = [TensorSpec(f"t{i}", DType.FLOAT32, 10, backward_order=i, planned=ARGUMENT["planned"])
         for i in range(ARGUMENT["tensors"])]
say("REGISTERS")
tensors = job.register(specs)
if not ARGUMENT["planned"]:
    ended(job, job.submit(tensors[-1], 0, np.ones(10, np.float32)))
job.close()
report(handles=tensors == list(range(len(tensors))))
"""


@pytest.mark.parametrize("planned", [False, True])
def test_many_tensors_are_registered_while_others_go_on(cluster_of, planned):
    cluster = cluster_of(1)
    others = cluster.start(SUM_FOREVER, nodes=[0, 0], job="others")
    wait_until_running(others)
    many = cluster.start(MANY, nodes=[0, 0], job="many", argument={"tensors": TENSORS, "planned": planned})
    for trainer in many:
        assert trainer.result()["handles"]
    end_running(others)
    cluster.expect_healthy()


def test_a_trainer_may_die_while_it_registers(cluster_of):
    cluster = cluster_of(1)
    others = cluster.start(SUM_FOREVER, nodes=[0, 0], job="others")
    wait_until_running(others)
    many = cluster.start(MANY, nodes=[0, 0], job="many", argument={"tensors": TENSORS, "planned": True})
    many[0].wait_for("REGISTERS")
    many[0].kill()
    assert "lost rank 0" in many[1].error()["text"]
    again = cluster.start(MANY, nodes=[0], job="again", argument={"tensors": 1000, "planned": True})
    assert again[0].result()["handles"]
    end_running(others)
    cluster.expect_healthy()
