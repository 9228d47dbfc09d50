# SPDX-License-Identifier: Apache-2.0
"""The token of a group's job is known to those who were there when it was made."""

from __future__ import annotations

from datetime import timedelta

import pytest
from cluster_runs import once, run

dist = pytest.importorskip("torch.distributed")


@once  # An older torch cannot list a store's keys.
def test_no_token_stays_in_torchs_store(tmp_path):
    results = run("tokens.py", str(tmp_path / "store"), ranks_per_node=2).expect(2)
    for result in results:
        assert result["left"] == []
        assert result["mode"] == 0o600  # What a file store forgets stays in its file.


def test_who_comes_after_rank_0_has_given_up_is_told_so(monkeypatch):
    from braid.errors import UnavailableError
    from braid.torch.group import creation

    store, token = dist.HashStore(), []

    def no_job(*_, **options):
        token.append(options["token"])
        raise UnavailableError("there is no daemon")

    monkeypatch.setattr(creation, "Job", no_job)
    with pytest.raises(dist.DistBackendError, match="there is no daemon"):
        creation.create_group(store, 0, 2, timedelta(minutes=5))
    assert token[0] not in store.get("braid/job/1").decode()
    with pytest.raises(dist.DistBackendError, match="rank 0 could not make the group that rank 1 of 2"):
        creation.create_group(store, 1, 2, timedelta(minutes=5))


def test_why_a_rank_cannot_come_is_told_without_the_token(monkeypatch):
    from braid.errors import UnavailableError
    from braid.torch.group import creation

    def no_job(*_, **options):
        raise UnavailableError(f"there is no daemon for {options['token']}")

    store = dist.HashStore()
    store.set("braid/job/1", "the name\n127.0.0.1\n0\nthesecret")
    monkeypatch.setattr(creation, "Job", no_job)
    with pytest.raises(dist.DistBackendError, match="there is no daemon"):
        creation.create_group(store, 1, 2, timedelta(minutes=5))
    assert store.get("braid/failure/1").decode() == (
        "1\nUnavailableError: there is no daemon for (the job's token)"
    )


def test_who_comes_where_rank_0_does_not_is_told_so():
    from braid.torch.group import creation

    with pytest.raises(dist.DistBackendError, match="rank 1 of 2 waited 0.01 s for rank 0"):
        creation.create_group(dist.HashStore(), 1, 2, timedelta(milliseconds=10))
