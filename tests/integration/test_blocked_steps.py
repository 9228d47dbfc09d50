# SPDX-License-Identifier: Apache-2.0
"""Steps of od-sgd while the network is blocked: the next weights come, and those after them do not."""

import contextlib
import importlib.util
import pathlib
import sys
import time

import pytest
from braid_build import IS_SANITIZED, REPOSITORY
from real_cluster import PEERS_WAIT, Trainer, needs_daemons, until
from silent_network import dropped, skip_without_packet_filter

sys.path.append(str(REPOSITORY / "tests" / "python"))
import quadratics  # noqa: E402

pytestmark = [
    needs_daemons,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.skipif(IS_SANITIZED, reason="torch is not built for the sanitizers"),
]

NODES = 3
CENTRES = (1.0, -3.0, 2.5)
OPTIONS = {"lr": quadratics.LR, "momentum": 0.8, "weight_decay": 0.02}
ROUNDS, FREE_STEPS, BLOCKED_STEPS = 3, 4, 2
BLOCKED, UNBLOCKED = "the network is blocked", "the network is not blocked any more"
START_S = 300  # torch takes long to import on a busy machine
# So often a trainer is looked at that is to wait, and so long apart. Daemons give up a link that has no flow for 5 s.
LOOKS, PAUSE_S = 10, 0.02

# Every node owns some of the elements, and they are all alike. All ranks and the test write events into one file.
TRAIN = """
import torch
import torch.distributed as dist
import braid.torch

centre, events = ARGUMENT["centres"][RANK], ARGUMENT["events"]
file = os.open(events, os.O_WRONLY | os.O_APPEND)


def note(event):
    os.write(file, f"rank {RANK}: {event}\\n".encode())


def step():
    x.grad = x.detach() - centre
    optimizer.step()
    seen.append([x.min().item(), x.max().item()])


braid.torch.register()
dist.init_process_group("braid")
x = torch.nn.Parameter(torch.full((100_000,), ARGUMENT["start"], dtype=torch.float64))
optimizer = braid.torch.DelayedOptimizer([x], "od-sgd", warmup_steps=0, **ARGUMENT["options"])
seen, known = [], []
for number in range(ARGUMENT["rounds"]):
    for _ in range(ARGUMENT["free_steps"]):
        step()
    optimizer.global_state.wait()
    note(f"has the global state {number}")
    while f"{ARGUMENT['blocked']} {number}" not in open(events).read():
        time.sleep(0.02)
    step()
    note(f"has its next weights {number}")
    known.append(optimizer.global_state.done())
    note(f"takes one more step {number}")
    step()
    note(f"has the weights after them {number}")
optimizer.finish()
report(seen=seen, end=[x.min().item(), x.max().item()], known=known)
dist.destroy_process_group()
"""


class Events:
    """A file in which ranks and the test write down what happens; its lines are in the order of events."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        path.touch()

    def note(self, event: str) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f"{event}\n")

    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines()

    def wait_for(self, event: str, trainers: list[Trainer]) -> None:
        """Waits until every rank has told of the event."""

        def ended() -> list[Trainer]:
            return [trainer for trainer in trainers if trainer.process.poll() is not None]

        def is_there() -> bool:
            lines = self.lines()
            return all(f"rank {trainer.rank}: {event}" in lines for trainer in trainers)

        until(lambda: is_there() or ended(), f"every rank {event}", START_S)
        assert not ended(), ended()[0].output()


def stays_asleep(trainer: Trainer) -> bool:
    """Its thread that trains waits for something, as often as it is looked at."""
    stat = pathlib.Path(f"/proc/{trainer.pid}/task/{trainer.pid}/stat")
    for _ in range(LOOKS):
        if stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "S":
            return False
        time.sleep(PAUSE_S)
    return True


def expect_order(lines: list[str]) -> None:
    for number in range(ROUNDS):
        blocked, unblocked = lines.index(f"{BLOCKED} {number}"), lines.index(f"{UNBLOCKED} {number}")
        for rank in range(NODES):
            went_on = lines.index(f"rank {rank}: has its next weights {number}")
            went_further = lines.index(f"rank {rank}: has the weights after them {number}")
            assert blocked < went_on < unblocked < went_further, lines


def expect_recurrence(results: list[dict]) -> None:
    steps = ROUNDS * (FREE_STEPS + BLOCKED_STEPS)
    xs, w = quadratics.recurrence(CENTRES, steps, momentum=OPTIONS["momentum"], decay=OPTIONS["weight_decay"])
    for result, x in zip(results, xs, strict=True):
        assert [least for least, _ in result["seen"]] == pytest.approx(x, rel=1e-12)
        assert [most for _, most in result["seen"]] == pytest.approx(x, rel=1e-12)
        assert result["end"] == pytest.approx([w, w], rel=1e-12) and result["end"] == results[0]["end"]


@pytest.mark.parametrize("cut_off", [[0, 1, 2], [1]], ids=["all nodes", "one node"])
def test_the_next_weights_come_while_the_network_is_blocked_and_those_after_do_not(cluster_of, tmp_path, cut_off):
    cluster = cluster_of(NODES, PEERS_WAIT)
    skip_without_packet_filter(cluster.nodes[0])
    events = Events(tmp_path / "events")
    argument = {
        "centres": CENTRES, "start": quadratics.START, "options": OPTIONS, "rounds": ROUNDS, "free_steps": FREE_STEPS,
        "events": str(events.path), "blocked": BLOCKED,
    }  # fmt: skip
    environment = {"MASTER_PORT": "29500", "GLOO_SOCKET_IFNAME": cluster.nodes[0].interface}
    trainers = cluster.start(TRAIN, argument=argument, environment=environment)
    for number in range(ROUNDS):
        # The sums of all steps so far have come everywhere.
        events.wait_for(f"has the global state {number}", trainers)
        with contextlib.ExitStack() as block:
            for node in (cluster.nodes[place] for place in cut_off):
                block.enter_context(dropped(node, f"INPUT -i {node.interface}", f"OUTPUT -o {node.interface}"))
            events.note(f"{BLOCKED} {number}")
            events.wait_for(f"takes one more step {number}", trainers)
            for trainer in trainers:
                until(lambda trainer=trainer: stays_asleep(trainer), f"rank {trainer.rank} waits")
            assert all(node.status()["jobs"][0]["operations_pending"] > 0 for node in cluster.nodes)
            events.note(f"{UNBLOCKED} {number}")
    results = [trainer.result() for trainer in trainers]
    expect_order(events.lines())
    for result in results:
        assert result["known"] == [False] * ROUNDS
    expect_recurrence(results)
