# SPDX-License-Identifier: Apache-2.0
"""Collectives of device memory, on real daemons and the fake CUDA driver.

More of them, for a change that concerns them: BRAID_DEVICE_PROGRAMS=2000 and BRAID_DEVICE_OUTAGES=200.
"""

import os
import random
import signal
import time

import pytest
from braid_build import ran
from device_runs import CHILDREN, OUTAGE, OUTAGE_COUNT, PROGRAM_COUNT, PROGRAM_S, PROGRAMS, expect_released
from real_cluster import Cluster, needs_daemons
from trainer_process import Trainer

pytestmark = [needs_daemons, pytest.mark.sanitized]


def test_random_programs_end_with_exact_results():
    with Cluster(nodes=2) as cluster:
        done = ran(
            [PROGRAMS, "--programs", str(PROGRAM_COUNT), *(node.socket for node in cluster.nodes)],
            timeout=PROGRAM_S * PROGRAM_COUNT,
            env={**os.environ, **CHILDREN},
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{PROGRAM_COUNT} programs, 0 failed" in done.stdout


def start_ranks(cluster: Cluster, seed: int) -> list[Trainer]:
    """Their operations have far more time than they need on a busy machine: whatever dies, it is not the deadline that
    ends them."""
    master = cluster.nodes[0].address
    return [
        Trainer(
            node, rank, [OUTAGE, node.socket, master, "0", str(rank), "2", str(seed), "60000"],
            {**os.environ, **CHILDREN},
        )
        for rank, node in enumerate(cluster.nodes)
    ]  # fmt: skip


@pytest.mark.parametrize("dying", ["rank", "far daemon", "own daemon"])
def test_whatever_dies_streams_go_on(dying):
    choice = random.Random(dying)
    with Cluster(nodes=2, settings=["control.peer_timeout_ms=2000"]) as cluster:
        for seed in range(1, 1 + (OUTAGE_COUNT + 2) // 3):
            ranks = start_ranks(cluster, seed)
            for rank in ranks:
                rank.wait_for("adding")
            time.sleep(choice.uniform(0, 0.3))
            if dying == "rank":
                ranks[1].kill()
                expect_released(ranks[0], "rank 1")
                continue
            node = cluster.nodes[1 if dying == "far daemon" else 0]
            node.signal(signal.SIGKILL)
            own, far = (ranks[1], ranks[0]) if dying == "far daemon" else (ranks[0], ranks[1])
            expect_released(own, "braidd")
            expect_released(far, node.name)
            node.restart()
