# SPDX-License-Identifier: Apache-2.0
"""All-reduces that do not go around the ring: by two hops, by halving and doubling, and by racks."""

import re
import signal

import pytest
from real_cluster import SUM_FOREVER, Cluster, needs_daemons, wait_until_running
from test_cluster_tool_delay import needs_delay_line
from test_collectives import ALL, BITS
from test_failures import expect_named

pytestmark = needs_daemons

TWO_HOPS = ("collective.direct_bytes=0", "collective.two_hops_bytes=1GiB")
LARGER = ("collective.direct_bytes=0", "collective.two_hops_bytes=0")
HALVING = (*LARGER, "collective.halving_bytes=1GiB")
BY_RACKS = (*LARGER, "collective.halving_bytes=0")
DISAGREE = """
job = open_job()
tensor = dynamic(job)
count = 2000 if RANK == 2 else 1000
ended(job, job.submit(tensor, 7, np.ones(count, np.float32), timeout=60))
"""


def expect_exact(trainers):
    for result in [trainer.result() for trainer in trainers]:
        assert result["wrong"] == []
        assert result["steps"] > 300


def open_links(node) -> set[str]:
    return {flow["peer"] for flow in node.status()["flows"] if flow["direction"] == "out"}


WAYS = pytest.mark.parametrize("settings", [HALVING, TWO_HOPS], ids=["halves", "two hops"])


@pytest.mark.parametrize("placed", [[0, 1, 2, 3], [0, 2, 1, 3, 0, 3], [0, 1, 2, 3, 4]], ids=str)
@WAYS
def test_every_collective_where_all_reduces_do_not_go_around_the_ring(cluster_of, settings, placed):
    cluster = cluster_of(5, *settings)
    expect_exact(cluster.start(ALL, nodes=placed))
    if settings == TWO_HOPS and len(placed) == 5:
        assert open_links(cluster.nodes[2]) == {"node0", "node1", "node3", "node4"}
    cluster.expect_healthy(placed)


@WAYS
def test_the_same_bits_everywhere_and_every_time(cluster_of, settings):
    cluster = cluster_of(5, *settings)
    runs = [cluster.start(BITS, nodes=[0, 1, 2, 3]) for _ in range(2)]
    assert len({trainer.result()["digest"] for run in runs for trainer in run}) == 1


@needs_delay_line
def test_far_nodes_take_two_hops_by_themselves():
    automatic = ("collective.two_hops_bytes=auto", "log.level=debug")
    with Cluster(4, automatic, delay_ms=2.5) as cluster:
        expect_exact(cluster.start(ALL))
        [told] = re.findall(r"round trips of up to ([\d.]+) ms;.* by two hops up to (\d+)",
                            cluster.nodes[0].log())  # fmt: skip
        assert float(told[0]) >= 5 and int(told[1]) > 1_000_000
        assert open_links(cluster.nodes[2]) == {"node0", "node1", "node3"}


def test_three_nodes_go_around_the_ring(cluster_of):
    with Cluster(3, HALVING) as cluster:
        expect_exact(cluster.start(ALL))
        assert open_links(cluster.nodes[0]) == {"node1"}


# By two hops: parts of 1,000 elements and of 2,000 go out at once; above 4 KiB none goes by two hops.
@pytest.mark.parametrize(("two_hops", "halving"), [("1GiB", "0"), ("4KiB", "0"), ("0", "4KiB")])
def test_ranks_that_disagree_are_named_though_they_take_different_ways(
    cluster_of, two_hops, halving
):
    cluster = cluster_of(
        5, "collective.direct_bytes=0", f"collective.two_hops_bytes={two_hops}",
        f"collective.halving_bytes={halving}",
    )  # fmt: skip
    for trainer in cluster.start(DISAGREE, nodes=[0, 1, 2, 3]):
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_MISMATCH", error
        for word in ("'stream' step 7", "rank 2 says", "× 1000", "× 2000"):
            assert word in error["text"], error
    cluster.expect_healthy()


# Nodes 0 and 2 are in one rack, 1 and 3 in the other.
def test_two_racks_of_two(tmp_path):
    with Cluster(4, BY_RACKS, racks=2) as cluster:
        expect_exact(cluster.start(ALL))
        runs = [cluster.start(BITS) for _ in range(2)]
        assert len({trainer.result()["digest"] for run in runs for trainer in run}) == 1
        trainers = cluster.start(SUM_FOREVER)
        wait_until_running(trainers)
        members = cluster.nodes[1].status()["jobs"][0]["nodes"]
        assert [(node["name"], node["rack"]) for node in members] == [
            ("node0", "rack0"), ("node2", "rack0"), ("node1", "rack1"), ("node3", "rack1"),
        ]
        # To the next node of the ring, which is in the other rack, and to the other one in its own.
        assert open_links(cluster.nodes[2]) == {"node0", "node1", "node3"}
        assert open_links(cluster.nodes[0]) == {"node2", "node1"}


@pytest.mark.parametrize("how", ["two hops", "halving", "racks"])
def test_a_killed_daemon_is_named_to_all_others(how):
    settings, racks = {"two hops": (TWO_HOPS, 0), "halving": (HALVING, 0), "racks": (BY_RACKS, 2)}[how]
    with Cluster(4, settings, racks=racks) as cluster:
        trainers = cluster.start(SUM_FOREVER)
        wait_until_running(trainers)
        cluster.nodes[3].signal(signal.SIGKILL)
        for trainer in trainers[:3]:
            expect_named(trainer.error(), 3, "node3")
        cluster.nodes[3].restart()
        cluster.expect_healthy()
