# SPDX-License-Identifier: Apache-2.0
"""Sends and receives between ranks that have not met before."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from cluster_runs import run

torch = pytest.importorskip("torch")

STARTS_LAZILY = tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 8)


@cache
def late() -> list[Any]:
    return run("late_ranks.py", nodes=3, ranks_per_node=1).expect(3)


RECEIVE = "receive of rank 0 from rank 1"
# At the timeout of the group the daemons end the job; at that of wait() the wait ends.
NOT_SENT = (
    "the receive of 12 bytes, tag 0, at rank 0 on node 'node0' from rank 1 on node 'node1' did not end within 2000 ms: "
    "no such message was sent"
)
NOT_RECEIVED = (
    "the send of 12 bytes, tag 0, from rank 0 on node 'node0' to rank 1 on node 'node1' did not end within 2000 ms: it "
    "was not received"
)
TEXTS = {
    "recv": [NOT_SENT],
    "send": [NOT_RECEIVED],
    "irecv": [f"{RECEIVE}: it has not ended within 2 s"],
    "isend": ["send of rank 0 to rank 1: it has not ended within 2 s"],
    "batch": [NOT_SENT, NOT_RECEIVED],  # Both end at the same time.
}


@pytest.mark.parametrize("way", TEXTS)
def test_a_rank_that_does_not_come_is_named_at_the_timeout(way):
    text = late()[0]["unanswered"][way]
    assert text.startswith("braid: Timed out waiting: ")
    assert any(wanted in text for wanted in TEXTS[way]), text


def test_a_collective_through_gloo_ends_at_its_timeout():
    text = late()[0]["unanswered"]["all_reduce"]
    if not STARTS_LAZILY:  # gloo waits for all ranks while it makes its group.
        assert "wait timeout after 2000ms" in text
        return
    what = "all_reduce of torch.int8 through gloo on rank 0"
    assert text == f"braid: Timed out waiting: {what}: it has not ended within 2 s"


def test_a_rank_that_does_not_send_again_is_named_at_the_timeout():
    assert NOT_SENT in late()[0]["connected"]


def test_a_receive_that_timed_out_takes_nothing_from_the_next_one():
    text, received, untouched = late()[0]["again"]
    assert RECEIVE in text
    assert (received, untouched) == (7.0, 0.0)


def test_receives_stand_before_the_sender_comes_and_keep_their_order():
    assert late()[0]["later"] == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_a_receive_holds_up_no_send_to_another_rank():
    assert late()[0]["in_a_ring"] == 5.0


def test_a_receive_that_nobody_answered_ends_with_the_group():
    assert "the process group was destroyed" in late()[0]["destroyed"]
