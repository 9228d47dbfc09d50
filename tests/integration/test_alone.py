# SPDX-License-Identifier: Apache-2.0
"""A daemon without a cluster key works alone: it opens no port, and reaches no other daemon."""

import subprocess

from real_cluster import SUM_FOREVER, end_running, needs_daemons, wait_until_running
from single_daemon import SingleDaemon

pytestmark = needs_daemons


def ports_of(daemon: SingleDaemon) -> list[str]:
    lines = subprocess.run(["ss", "-tlnpH"], capture_output=True, text=True, check=True).stdout
    return [line for line in lines.splitlines() if f"pid={daemon.process.pid}," in line]


def test_it_listens_on_no_tcp_port_before_and_during_a_job():
    with SingleDaemon() as daemon:
        assert ports_of(daemon) == []
        trainers = daemon.start(SUM_FOREVER, world=2)
        wait_until_running(trainers)
        assert ports_of(daemon) == []
        end_running(trainers)
        assert "no peers" in daemon.said()


def test_a_master_elsewhere_is_refused_with_the_key_that_is_missing():
    with SingleDaemon() as daemon:
        (trainer,) = daemon.start("open_job(master_address='192.0.2.7')", world=1)
        text = trainer.error()["text"]
        assert "192.0.2.7" in text and "node 'alone' has no cluster key" in text
        assert "set control.cluster_key_file on all nodes" in text
