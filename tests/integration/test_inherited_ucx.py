# SPDX-License-Identifier: Apache-2.0
"""What UCX finds around the daemon: variables of somebody else's MPI or NCCL, and too few ports."""

from real_cluster import SUM_FOREVER, Cluster, needs_daemons, until
from single_daemon import SingleDaemon

pytestmark = needs_daemons

TWELVE_PORTS = "40000 40011"


def test_variables_that_say_what_braid_sets_itself_are_ignored_and_named_in_one_line():
    foreign = {"UCX_TLS": "rc,sm", "UCX_NET_DEVICES": "mlx5_0:1", "UCX_IB_GID_INDEX": "3"}
    with SingleDaemon("transport.tcp=ucx", environment=foreign) as daemon:
        lines = [line for line in daemon.said().splitlines() if "ignored in the environment" in line]
        assert len(lines) == 1, daemon.said()
        assert "UCX_TLS=rc,sm" in lines[0] and "UCX_NET_DEVICES=mlx5_0:1" in lines[0]
        assert "UCX follows the environment in UCX_IB_GID_INDEX=3" in daemon.said()


def test_where_local_ports_run_out_the_log_names_their_range():
    with Cluster(2, ("transport.tcp=ucx", "transport.flows_per_link=16", "debug.connect_timeout_ms=60000")) as cluster:
        for node in cluster.nodes:
            node.run("sysctl", "-qw", f"net.ipv4.ip_local_port_range={TWELVE_PORTS}")
        trainers = cluster.start(SUM_FOREVER)
        until(
            lambda: all(f"net.ipv4.ip_local_port_range is {TWELVE_PORTS}" in node.log() for node in cluster.nodes),
            "the logs say it",
        )
        for trainer in trainers:
            trainer.kill()
