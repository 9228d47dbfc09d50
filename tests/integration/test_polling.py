# SPDX-License-Identifier: Apache-2.0
"""However loops and trainers wait (node.polling), operations end with the right sums, and status says what it costs.

What pays, polling and few flows, jobs find out by themselves.
"""

import pytest
from real_cluster import SUM_FOREVER, braidctl, end_running, expect_to_go_on, needs_daemons, until, wait_until_running
from test_algorithms import expect_exact
from test_collectives import ALL

pytestmark = needs_daemons

SMALL_SUMS_FOREVER = "sum_forever(open_job(), count=100)"


def polls(node) -> dict[str, int]:
    counters = node.status()["counters"]
    prefix = "braid_polls_total.control."
    return {name.removeprefix(prefix): count for name, count in counters.items() if name.startswith(prefix)}


@pytest.mark.parametrize(
    ("mode", "io_threads"),
    [("off", 3), pytest.param("adaptive", 3, marks=pytest.mark.sanitized), ("adaptive", 1), ("always", 3)],
)
def test_every_collective_in_every_mode(cluster_of, mode, io_threads):
    cluster = cluster_of(3, f"node.polling={mode}", f"transport.io_threads={io_threads}")
    expect_exact(cluster.start(ALL, nodes=[0, 1, 2, 0]))
    cluster.expect_healthy([0, 1, 2])
    for node in cluster.nodes:
        status = node.status()["polling"]
        assert status["mode"] == mode
        if mode != "adaptive":  # there a job begins without, and may end before it has tried
            assert (status["seconds"] > 0) == (mode == "always")
            assert (sum(polls(node).values()) > 0) == (mode == "always")


def found_on_all(cluster, subject: str) -> list[dict]:
    """What every node says that the job's duels have found; empty: one of them says nothing yet."""
    found = [node.status()["jobs"][0][subject] for node in cluster.nodes]
    return found if all(one["duels"] for one in found) else []


@pytest.mark.sanitized
def test_a_job_finds_out_whether_polling_pays_and_all_nodes_say_what_it_found(cluster_of):
    cluster = cluster_of(2, "node.polling=adaptive")
    trainers = cluster.start(SMALL_SUMS_FOREVER)
    wait_until_running(trainers)
    until(lambda: found_on_all(cluster, "polling"), "a duel is over")
    for node, found in zip(cluster.nodes, found_on_all(cluster, "polling"), strict=True):
        assert found["gain"] > 0
        assert "so threads that wait" in braidctl(node.socket, "status").stdout
    # Whatever it found, it has tried both.
    assert sum(polls(cluster.nodes[0]).values()) > 0
    assert sum(polls(cluster.nodes[1]).values()) > 0
    expect_to_go_on(trainers)
    end_running(trainers)
    cluster.expect_healthy()


@pytest.mark.sanitized
def test_a_job_finds_out_whether_few_flows_pay_and_all_nodes_say_what_it_found(cluster_of):
    cluster = cluster_of(2, "node.polling=off")
    trainers = cluster.start(SMALL_SUMS_FOREVER)
    wait_until_running(trainers)
    until(lambda: found_on_all(cluster, "few_flows"), "a duel is over")
    for node, found in zip(cluster.nodes, found_on_all(cluster, "few_flows"), strict=True):
        assert found["gain"] > 0
        assert "one flow for each rail makes" in braidctl(node.socket, "status").stdout
    expect_to_go_on(trainers)
    end_running(trainers)
    cluster.expect_healthy()


def expect_nobody_tries_few_flows(cluster, nodes: list[int]) -> None:
    trainers = cluster.start(SMALL_SUMS_FOREVER, nodes=nodes)
    wait_until_running(trainers)
    first = cluster.nodes[nodes[0]]
    begun = first.status()["jobs"][0]["operations_done"]
    until(lambda: first.status()["jobs"][0]["operations_done"] > begun + 4000, "time for duels")
    for node in nodes:
        assert cluster.nodes[node].status()["jobs"][0]["few_flows"] == {"pays": False, "gain": 0.0, "duels": 0}
    end_running(trainers)
    cluster.expect_healthy(sorted(set(nodes)))


@pytest.mark.parametrize("setting", ["tune.mode=off", "debug.pin=[flows_per_link]", "transport.flows_per_link=1"])
def test_where_flows_are_not_tuned_nobody_tries_few(cluster_of, setting):
    expect_nobody_tries_few_flows(cluster_of(2, "node.polling=off", setting), [0, 1])


def test_a_job_on_one_node_has_no_flows_to_try(cluster_of):
    expect_nobody_tries_few_flows(cluster_of(2, "node.polling=off"), [0, 0])


def test_where_rank_0_does_not_poll_nobody_tries(cluster_of):
    cluster = cluster_of(2, "node.polling=off")
    trainers = cluster.start(SUM_FOREVER)
    wait_until_running(trainers)
    expect_to_go_on(trainers)
    for node in cluster.nodes:
        assert node.status()["jobs"][0]["polling"] == {"pays": False, "gain": 0.0, "duels": 0}
    end_running(trainers)
    cluster.expect_healthy()


@pytest.mark.sanitized
@pytest.mark.parametrize("mode", ["adaptive", "always"])
def test_a_trainer_that_dies_is_noticed_by_those_that_poll(cluster_of, mode):
    cluster = cluster_of(2, f"node.polling={mode}")
    trainers = cluster.start(SUM_FOREVER)
    wait_until_running(trainers)
    end_running(trainers)
    cluster.expect_healthy()
