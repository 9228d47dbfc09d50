# SPDX-License-Identifier: Apache-2.0
"""The works of sends and receives: who ends them, and what is left of one that was given up."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from in_process import run_ranks  # noqa: E402

SHORT = timedelta(milliseconds=50)


def ones(value: float, size: int = 3) -> Any:
    return torch.full((size,), float(value))


def test_what_nobody_waits_for_ends():
    def work(group: Any, world: Any) -> bool:
        if group.rank() == 1:
            group.send([ones(5)], 0)
            return True
        got = ones(0)
        one = group.recv([got], 1)
        while not one.is_completed():
            pass
        return torch.equal(got, ones(5)) and one.is_success() and one._source_rank() == 1

    assert run_ranks(2, work) == [True, True]


def test_several_threads_may_wait_for_one_receive():
    def work(group: Any, world: Any) -> float:
        got = ones(0)
        if group.rank() == 0:
            one = group.recv([got], 1)
            threads = [threading.Thread(target=one.wait) for _ in range(4)]
            for thread in threads:
                thread.start()
            group.barrier().wait()
            for thread in threads:
                thread.join()
        else:
            group.barrier().wait()
            group.send([ones(5)], 0).wait()
        return got[0].item()

    assert run_ranks(2, work) == [5.0, 0.0]


def test_a_receive_that_was_given_up_leaves_its_message_to_the_next_one():
    def work(group: Any, world: Any) -> list[float]:
        first, second, third = ones(0), ones(0), ones(0)
        if group.rank() == 0:
            one = group.recv([first], 1)
            with pytest.raises(RuntimeError, match="Timed out waiting: receive of rank 0 from rank 1"):
                one.wait(SHORT)
            assert one.is_completed() and not one.is_success()
            group.barrier().wait()
            group.recv([second], 1).wait()
            group.recv([third], 1).wait()
        else:
            group.barrier().wait()
            for value in (7, 8):
                group.send([ones(value)], 0).wait()
        return [first[0].item(), second[0].item(), third[0].item()]

    assert run_ranks(2, work)[0] == [0.0, 7.0, 8.0]


def test_a_send_whose_wait_timed_out_still_arrives():
    def work(group: Any, world: Any) -> float:
        got = ones(0)
        if group.rank() == 0:
            one = group.send([ones(7)], 1)
            with pytest.raises(RuntimeError, match="Timed out waiting: send of rank 0 to rank 1"):
                one.wait(SHORT)
            group.barrier().wait()
            one.wait()
        else:
            group.barrier().wait()
            group.recv([got], 0).wait()
        return got[0].item()

    assert run_ranks(2, work) == [0.0, 7.0]


def test_a_tag_is_not_negative():
    def work(group: Any, world: Any) -> None:
        with pytest.raises(ValueError, match="-1"):
            group.send([ones(1)], 1 - group.rank(), -1)
        with pytest.raises(ValueError, match="-1"):
            group.recv_anysource([ones(1)], -1)

    run_ranks(2, work)


def test_what_is_under_way_ends_with_the_group():
    def work(group: Any, world: Any) -> str:
        one = group.recv([ones(0)], 1 - group.rank())
        group.shutdown()
        with pytest.raises(RuntimeError) as told:
            one.wait()
        with pytest.raises(RuntimeError, match="destroyed"):
            group.send([ones(1)], 1 - group.rank())
        return str(told.value)

    for text in run_ranks(2, work):
        assert "the process group was destroyed" in text
