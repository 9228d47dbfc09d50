# SPDX-License-Identifier: Apache-2.0
"""Where braid is switched on for some ranks only, those say so and do not wait until their time is over."""

from __future__ import annotations

from datetime import timedelta

import pytest
from cluster_runs import once, run

dist = pytest.importorskip("torch.distributed")


@once
@pytest.mark.parametrize(
    ("size", "gloo", "late"),
    [(2, [0], ""), (2, [0], "0"), (2, [1], ""), (2, [1], "1"), (3, [0], ""), (3, [1], ""), (3, [1, 2], "")],
)
def test_ranks_that_come_through_gloo_are_named(tmp_path, size, gloo, late):
    names = ",".join(map(str, gloo))
    done = run("half_enabled.py", str(tmp_path), names, late, ranks_per_node=size)
    assert sorted(done.results) == [rank for rank in range(size) if rank not in gloo], done.output
    for result in done.results.values():
        assert "through torch's gloo" in result["text"], result
        # Others than those who have come cannot be known of yet.
        assert any(f"rank {one} came" in result["text"] for one in gloo) or (
            f"ranks {', '.join(map(str, gloo))} came" in result["text"]
        ), result


@once
def test_a_rank_that_is_late_is_waited_for(tmp_path):
    for result in run("half_enabled.py", str(tmp_path), "", "1", ranks_per_node=3).expect(3):
        assert result["total"] == 3


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def arrivals_of(store, rank, size=3):
    from braid.torch.group.arrivals import Arrivals

    clock = Clock()
    return Arrivals(store, rank, size, clock), clock


def look(arrivals, clock, times=30):
    for _ in range(times):
        clock.now += 1
        arrivals.look()


def test_late_ranks_are_named_in_one_warning(caplog):
    store = dist.HashStore()
    arrivals, clock = arrivals_of(store, 0)
    arrivals_of(store, 2)
    look(arrivals, clock)
    assert [record.getMessage() for record in caplog.records] == [
        "rank 0 of 3 has waited 10 s for rank 1 to come through braid. If they are running, braid is not "
        "switched on there (BRAID_ENABLE=1, braid-run or the backend 'braid')"
    ]


def test_nobody_is_named_who_has_come(caplog):
    store = dist.HashStore()
    arrivals = [arrivals_of(store, rank) for rank in range(3)]
    for one in arrivals:
        look(*one)
    assert not caplog.records


def test_a_group_of_gloo_that_was_here_before_is_no_reason():
    store = dist.HashStore()
    for rank in range(3):
        store.set(f"0/{rank}", "gloo listens here")
    look(*arrivals_of(store, 0))
    look(*arrivals_of(store, 1))


def test_who_came_through_gloo_and_then_through_braid_is_not_accused():
    store = dist.HashStore()
    store.set("0/1", "gloo listens here")
    arrivals_of(store, 1)
    look(*arrivals_of(store, 0))


def test_in_a_large_group_all_are_looked_at_in_turn():
    store = dist.HashStore()
    store.set("0/999", "gloo listens here")
    with pytest.raises(dist.DistBackendError, match="rank 999 came through torch's gloo"):
        look(*arrivals_of(store, 0, size=1000))


def test_who_waits_hears_why_another_rank_cannot_come():
    store = dist.HashStore()
    ranks = [arrivals_of(store, rank) for rank in range(3)]
    ranks[2][0].give_up("no braidd on\nthis node\x1b[31m" + 5000 * "!")
    ranks[1][0].give_up("of another reason")
    for arrivals, clock in ranks[:2]:
        with pytest.raises(dist.DistBackendError, match="rank 2 of 3 .* no braidd on this node .31m!") as told:
            look(arrivals, clock)
        assert len(str(told.value)) < 1200


def test_a_reason_of_a_group_before_this_one_does_not_count():
    store = dist.HashStore()
    arrivals_of(store, 0)
    arrivals_of(store, 1)[0].give_up("no braidd on this node")
    ranks = [arrivals_of(store, rank) for rank in range(3)]
    look(*ranks[0])
    look(*ranks[1])


def test_two_processes_with_one_rank_are_told_apart():
    store = dist.HashStore()
    first, second = arrivals_of(store, 0), arrivals_of(store, 0)
    with pytest.raises(dist.DistBackendError, match="2 processes say that they are rank 0 of 3: give each .*RANK"):
        look(*first)
    with pytest.raises(dist.DistBackendError, match="It says: 2 processes say that they are rank 0 of 3"):
        look(*second)


def test_a_process_that_comes_again_is_no_second_one():
    store = dist.HashStore()
    arrivals_of(store, 0)
    look(*arrivals_of(store, 0))


def test_who_waits_for_rank_0_hears_what_rank_0_may_wait_for():
    from braid.torch.group.creation import create_group

    text = r"rank 0 has not come, or not to braid, or it still waits for 3 processes \(WORLD_SIZE\) to reach"
    with pytest.raises(dist.DistBackendError, match=text):
        create_group(dist.HashStore(), 1, 3, timedelta(milliseconds=200))
