# SPDX-License-Identifier: Apache-2.0
"""The job of a process group: where its ranks meet, whatever their launcher takes for rank 0's address, and its token,
which is known to those who were there when it was made."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from cluster_runs import ON_LOOPBACK, once, run

dist = pytest.importorskip("torch.distributed")


# As launchers have it: rank 0 is told that it is "localhost", and the others where it is.
@pytest.mark.parametrize("way", ["localhost", "file", "stale"])
def test_ranks_of_two_nodes_meet(way, tmp_path):
    results = run("met.py", way, str(tmp_path / "store"), nodes=2, ranks_per_node=1).expect(2)
    for result in results:
        assert result["total"] == 2
        assert result["heard"] == 1 - result["rank"]  # by gloo, which connects ranks on its own


def test_an_address_of_a_daemon_may_have_a_port():
    from braid.torch.group.gloo import host_of

    for host in ("node-7", "192.0.2.7"):
        assert host_of(host) == host_of(f"{host}:45123") == host
    for host in ("2001:db8::7", "fe80::7%eth0"):
        assert host_of(host) == host_of(f"[{host}]:45123") == host


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


@once  # An older torch cannot list a store's keys.
def test_no_token_stays_in_torchs_store(tmp_path):
    results = run("tokens.py", str(tmp_path / "store"), ranks_per_node=2).expect(2)
    for result in results:
        assert result["left"] == []
        assert result["mode"] == 0o600  # What a file store forgets stays in its file.


@pytest.fixture
def refused(monkeypatch):
    """Makes a group of two ranks, where no daemon lets a rank join a job; the error, and the token that was given."""
    from braid.errors import UnavailableError
    from braid.torch.group import creation

    given: dict[str, Any] = {}

    def no_job(*_, **options):
        given.update(options)
        raise UnavailableError(f"no daemon at {options['master_address']} for {options['token']}")

    def create(store: Any, rank: int) -> tuple[str, str]:
        with pytest.raises(dist.DistBackendError) as error:
            creation.create_group(store, rank, 2, timedelta(minutes=5))
        return str(error.value), given.get("token", "")

    monkeypatch.setattr(creation, "Job", no_job)
    return create


def test_where_the_daemon_of_rank_0_is_not_reached_the_way_that_torch_takes_is_named(monkeypatch, refused):
    from braid.torch.group import creation

    def own_end(*peers):
        assert peers == ("10.78.77.1",)
        return "10.78.77.2"

    store = dist.HashStore()
    store.set("braid/job/1", "the name\n192.168.1.1\n7\nthesecret\na\n-\n-")
    monkeypatch.setenv("MASTER_ADDR", "10.78.77.1")
    monkeypatch.setattr(creation, "local_address", own_end)
    assert "MASTER_ADDR 10.78.77.1, which this node reaches from 10.78.77.2" in refused(store, 1)[0]


def test_who_comes_after_rank_0_has_given_up_is_told_so(refused):
    store = dist.HashStore()
    error, token = refused(store, 0)
    assert "no daemon" in error
    assert token and token not in store.get("braid/job/1").decode()
    assert "rank 0 could not make the group that rank 1 of 2" in refused(store, 1)[0]


def test_why_a_rank_cannot_come_is_told_without_the_token(refused):
    store = dist.HashStore()
    store.set("braid/job/1", "the name\n127.0.0.1\n0\nthesecret\na\n-\n-")
    refused(store, 1)
    assert store.get("braid/failure/1").decode() == (
        "1\nUnavailableError: no daemon at 127.0.0.1 for (the job's token)"
    )


def test_who_comes_where_rank_0_does_not_is_told_so():
    from braid.torch.group import creation

    with pytest.raises(dist.DistBackendError, match="rank 1 of 2 waited 0.01 s for rank 0"):
        creation.create_group(dist.HashStore(), 1, 2, timedelta(milliseconds=10))
