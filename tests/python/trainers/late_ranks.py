# SPDX-License-Identifier: Apache-2.0
"""Sends and receives between ranks that have not met, of which one comes late or not at all.

Three ranks. The late one waits until the store says that the other one is where it should be.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from report import report, told
from torch.distributed import distributed_c10d
from torch.distributed.distributed_c10d import _set_pg_timeout

import braid.torch

LONG = timedelta(seconds=300)
SHORT = timedelta(seconds=2)
MESSAGES = 5

WAYS: dict[str, Callable[[Any], Any]] = {
    "recv": lambda group: dist.recv(torch.ones(3), 1, group=group),
    "send": lambda group: dist.send(torch.ones(3), 1, group=group),
    "irecv": lambda group: dist.irecv(torch.ones(3), 1, group=group).wait(SHORT),
    "isend": lambda group: dist.isend(torch.ones(3), 1, group=group).wait(SHORT),
    "batch": lambda group: [
        work.wait()
        for work in dist.batch_isend_irecv([
            dist.P2POp(dist.isend, torch.ones(3), 1, group),
            dist.P2POp(dist.irecv, torch.ones(3), 1, group),
        ])
    ],
    "all_reduce": lambda group: dist.all_reduce(torch.ones(3, dtype=torch.int8), group=group),
}  # fmt: skip


class Ranks:
    """What a case has: its group, this rank, and words that ranks say to each other."""

    def __init__(self, case: str) -> None:
        self.group = dist.new_group(timeout=LONG)
        self.rank = dist.get_rank()
        self.case = case
        self.store = distributed_c10d._get_default_store()

    def say(self, word: str) -> None:
        self.store.set(f"{self.case}/{word}", "")

    def hear(self, word: str) -> None:
        self.store.wait([f"{self.case}/{word}"], LONG)

    def be_short(self) -> None:
        getattr(dist, "set_timeout", _set_pg_timeout)(SHORT, self.group)

    def send(self, value: float, to: int) -> None:
        dist.send(torch.full((3,), float(value)), to, group=self.group)

    def receive(self, source: int) -> float:
        tensor = torch.zeros(3)
        dist.recv(tensor, source, group=self.group)
        return tensor[0].item()


def unanswered(ranks: Ranks) -> dict[str, str]:
    """Rank 1 does not come before rank 0 has been told so."""
    texts = {}
    for name, way in WAYS.items():
        group = dist.new_group(timeout=LONG)
        if ranks.rank == 0:
            if name not in ("irecv", "isend"):
                getattr(dist, "set_timeout", _set_pg_timeout)(SHORT, group)
            texts[name] = told(lambda: way(group))
    if ranks.rank == 0:
        ranks.say("told")
    ranks.hear("told")
    return texts


def connected(ranks: Ranks) -> str:
    """Rank 1 has come once, and does not come again."""
    text = ""
    if ranks.rank == 0:
        ranks.receive(1)
        ranks.be_short()
        text = told(lambda: ranks.receive(1))
        ranks.say("told")
    elif ranks.rank == 1:
        ranks.send(1, 0)
    ranks.hear("told")
    return text


def again(ranks: Ranks) -> list[Any]:
    """What has timed out takes nothing from what follows."""
    if ranks.rank == 0:
        first = torch.zeros(3)
        text = told(lambda: dist.irecv(first, 1, group=ranks.group).wait(SHORT))
        ranks.say("told")
        return [text, ranks.receive(1), first[0].item()]
    if ranks.rank == 1:
        ranks.hear("told")
        ranks.send(7, 0)
    return []


def later(ranks: Ranks) -> list[float]:
    """The sender comes when the receives stand, and its messages stay in their order."""
    if ranks.rank == 0:
        tensors = [torch.zeros(3) for _ in range(MESSAGES)]
        works = [dist.irecv(tensor, 1, group=ranks.group) for tensor in tensors]
        ranks.say("posted")
        for work in works:
            work.wait()
        return [tensor[0].item() for tensor in tensors]
    if ranks.rank == 1:
        ranks.hear("posted")
        for value in range(MESSAGES):
            ranks.send(value, 0)
    return []


def in_a_ring(ranks: Ranks) -> float:
    """Rank 0 waits for what comes of its own message to somebody else."""
    if ranks.rank == 0:
        answer = torch.zeros(3)
        work = dist.irecv(answer, 1, group=ranks.group)
        ranks.send(3, 2)
        work.wait()
        return answer[0].item()
    ranks.send(ranks.receive(0 if ranks.rank == 2 else 2) + 1, ranks.rank - 1)
    return 0


def destroyed(ranks: Ranks) -> str:
    """The others stay in the group, for a receive from a rank that has left would end without it."""
    if ranks.rank != 0:
        ranks.hear("told")
        dist.destroy_process_group(ranks.group)
        return ""
    work = dist.irecv(torch.zeros(3), 1, group=ranks.group)
    dist.destroy_process_group(ranks.group)
    text = told(work.wait)
    ranks.say("told")
    return text


def main() -> None:
    braid.torch.register()
    dist.init_process_group("braid", timeout=LONG)
    cases = (unanswered, connected, again, later, in_a_ring, destroyed)
    report(**{case.__name__: case(Ranks(case.__name__)) for case in cases})
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
