# SPDX-License-Identifier: Apache-2.0
"""However loops and trainers wait (node.polling), operations end with the right sums, and status says what it costs."""

import pytest
from real_cluster import SUM_FOREVER, end_running, needs_daemons, wait_until_running
from test_algorithms import expect_exact
from test_collectives import ALL

pytestmark = needs_daemons


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
        assert node.status()["polling"]["mode"] == mode
        assert (node.status()["polling"]["seconds"] > 0) == (mode != "off")
        assert (sum(polls(node).values()) > 0) == (mode != "off")


@pytest.mark.sanitized
@pytest.mark.parametrize("mode", ["adaptive", "always"])
def test_a_trainer_that_dies_is_noticed_by_those_that_poll(cluster_of, mode):
    cluster = cluster_of(2, f"node.polling={mode}")
    trainers = cluster.start(SUM_FOREVER)
    wait_until_running(trainers)
    end_running(trainers)
    cluster.expect_healthy()
