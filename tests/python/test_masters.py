# SPDX-License-Identifier: Apache-2.0
"""The ranks of a job meet at rank 0's daemon, whatever their launcher takes for rank 0's address."""

import os

import pytest
from cluster_runs import run

pytest.importorskip("torch")
ON_LOOPBACK = os.geteuid() != 0 or "--loopback" in os.environ.get("BRAID_TEST_CLUSTER_OPTIONS", "")


# As launchers have it: rank 0 is told that it is "localhost", and the others where it is.
@pytest.mark.parametrize("way", ["localhost", "file", "stale"])
def test_ranks_of_two_nodes_meet(way, tmp_path):
    results = run("met.py", way, str(tmp_path / "store"), nodes=2, ranks_per_node=1).expect(2)
    for result in results:
        assert result["total"] == 2
        assert result["heard"] == 1 - result["rank"]  # by gloo, which connects ranks on its own


@pytest.mark.skipif(ON_LOOPBACK, reason="needs nodes with networks of their own")
def test_without_a_cluster_key_both_nodes_are_told_so(tmp_path):
    alone = ("--set", "control.cluster_key_file=", "--set", "control.listen=auto")
    done = run("met.py", "localhost", str(tmp_path / "store"), nodes=2, ranks_per_node=1, options=alone)
    assert done.exit_code != 0
    errors = [result["error"] for result in done.reported(2)]
    assert errors[0].startswith("braid: rank 1 of 2 could not join the group's job, for which rank 0 waits")
    for error in errors:
        assert "the braidd of rank 0 is on another node than this one" in error
        assert "set control.cluster_key_file on all nodes" in error


def test_where_the_daemon_of_rank_0_is_not_reached_the_way_that_torch_takes_is_named(monkeypatch):
    from datetime import timedelta

    import torch.distributed as dist

    from braid.errors import UnavailableError
    from braid.torch.group import creation

    def no_job(*_, master_address, **__):
        raise UnavailableError(f"cannot connect to the daemon at {master_address}")

    def own_end(*peers):
        assert peers == ("10.78.77.1",)
        return "10.78.77.2"

    store = dist.HashStore()
    store.set("braid/job/1", "the name\n192.168.1.1\n7\nthesecret")
    monkeypatch.setenv("MASTER_ADDR", "10.78.77.1")
    monkeypatch.setattr(creation, "Job", no_job)
    monkeypatch.setattr(creation, "local_address", own_end)
    with pytest.raises(dist.DistBackendError, match="MASTER_ADDR 10.78.77.1, which this node reaches from 10.78.77.2"):
        creation.create_group(store, 1, 2, timedelta(minutes=5))
