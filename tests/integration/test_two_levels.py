# SPDX-License-Identifier: Apache-2.0
"""NCCL within the node and braid between nodes, on real daemons, the fake CUDA driver and the fake NCCL.

More of them, for a change that concerns them: BRAID_DEVICE_PROGRAMS=2000 and BRAID_DEVICE_OUTAGES=200.
"""

import os
import random
import signal
import time

import pytest
from braid_build import ran
from device_runs import CHILDREN, OUTAGE, OUTAGE_COUNT, PROGRAM_COUNT, PROGRAM_S, PROGRAMS, expect_released
from real_cluster import PEERS_WAIT, Cluster, needs_daemons
from trainer_process import Trainer

pytestmark = [needs_daemons, pytest.mark.sanitized]

NODE_RANKS = 2
QUICK = ["control.peer_timeout_ms=2000"]
# Never what ends an operation, on the slowest machine; and what ends the one that NCCL holds up, long after all
# before it, of which there are few.
LONG_MS, SHORT_MS = 60_000, 12_000
# That of rank 2, which has the fault.
LOCAL_LEVEL = "NCCL between ranks 2 to 3"


@pytest.mark.parametrize("nodes", [2, 3])
def test_random_programs_end_with_exact_results(nodes):
    count = max(2, PROGRAM_COUNT // 2)
    with Cluster(nodes=nodes) as cluster:
        done = ran(
            [PROGRAMS, "--programs", str(count), "--node-ranks", str(NODE_RANKS), "--first", str(1000 * nodes),
             *(node.socket for node in cluster.nodes)],
            timeout=PROGRAM_S * count,
            env={**os.environ, **CHILDREN},
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} programs, 0 failed" in done.stdout


def start_ranks(
    cluster: Cluster, seed: int, fault: dict[str, str] | None = None, timeout_ms: int = LONG_MS
) -> list[Trainer]:
    """Two ranks on each node. Rank 2 may have a fault, as variables, and a timeout of its own."""
    master = cluster.nodes[0].address
    size = NODE_RANKS * len(cluster.nodes)
    ranks = []
    for rank in range(size):
        node, gpu = cluster.nodes[rank // NODE_RANKS], str(rank % NODE_RANKS)
        own_timeout = str(timeout_ms if rank == 2 else LONG_MS)
        command = [OUTAGE, node.socket, master, "0", str(rank), str(size), str(seed), own_timeout, gpu]
        own = {"FAKE_CUDA_DEVICES": str(NODE_RANKS), **CHILDREN, **((fault or {}) if rank == 2 else {})}
        ranks.append(Trainer(node, rank, command, {**os.environ, **own}))
    return ranks


@pytest.mark.parametrize("dying", ["rank", "far daemon", "own daemon"])
def test_whatever_dies_streams_go_on(dying):
    choice = random.Random(dying)
    with Cluster(nodes=2, settings=QUICK) as cluster:
        for seed in range(1, 1 + (OUTAGE_COUNT + 2) // 3):
            ranks = start_ranks(cluster, seed)
            for rank in ranks:
                rank.wait_for("adding")
                assert "2 levels" in rank.output()
            time.sleep(choice.uniform(0, 0.3))
            if dying == "rank":
                ranks[3].kill()
                for rank in ranks[:3]:
                    expect_released(rank, "rank 3")
                continue
            dead = 1 if dying == "far daemon" else 0
            node = cluster.nodes[dead]
            node.signal(signal.SIGKILL)
            for number, rank in enumerate(ranks):
                expect_released(rank, "braidd" if number // NODE_RANKS == dead else node.name)
            node.restart()


@pytest.mark.parametrize(
    ("fault", "timeout_ms"),
    [
        ({"FAKE_NCCL_HANG": "6"}, SHORT_MS),
        ({"FAKE_NCCL_FAIL": "ncclReduceScatter:12"}, LONG_MS),
        ({"FAKE_NCCL_ASYNC_ERROR": "25:6"}, LONG_MS),
    ],
    ids=["hangs", "fails", "has an error"],
)
def test_a_local_level_ends_in_time_and_all_ranks_hear_its_name(fault, timeout_ms):
    with Cluster(nodes=2, settings=[PEERS_WAIT]) as cluster:
        for number, rank in enumerate(start_ranks(cluster, 1, fault, timeout_ms)):
            expect_released(rank, LOCAL_LEVEL)
            # The others were told. Where it hangs, they may come to the same by their own deadline.
            assert number == 2 or timeout_ms == SHORT_MS or "cannot go on: " in rank.output(), rank.output()


@pytest.mark.parametrize("function", ["ncclGetUniqueId", "ncclCommInitRank"])
def test_a_local_level_that_does_not_begin_leaves_one_level(function):
    """All ranks hear why, and the job goes on."""
    with Cluster(nodes=2, settings=QUICK) as cluster:
        ranks = start_ranks(cluster, 1, {"FAKE_NCCL_FAIL": f"{function}:1"})
        for rank in ranks:
            rank.wait_for("adding")
            assert "1 levels: rank 2: " in rank.output()
            assert f"NCCL's {function} failed" in rank.output()
        ranks[3].kill()
        for rank in ranks[:3]:
            expect_released(rank, "rank 3")
