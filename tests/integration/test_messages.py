# SPDX-License-Identifier: Apache-2.0
"""Messages between two ranks: bytes, tags, order, any source, and who is named when something is wrong."""

import json
import signal

import pytest
from braid_build import braidctl
from real_cluster import needs_daemons, until, wait_until_running
from test_failures import expect_named
from test_operations import metrics

pytestmark = [needs_daemons, pytest.mark.sanitized]

# Ranks of a node need not be neighbours, and nodes need not have equally many.
SHAPES = {
    "1x3": (1, [0, 0, 0]),
    "3x1": (3, [0, 1, 2]),
    "2x2": (2, [0, 0, 1, 1]),
    "unequal": (3, [2, 0, 2, 1, 0, 2]),
}

BYTES = """
def bytes_of(sender, receiver, number, size):
    seed = [sender, receiver, number]
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)
"""

# Every rank sends to every other one, several messages at a time, in small and large sizes.
ALL_PAIRS = BYTES + """
from braid import ANY_RANK
SIZES = (0, 1, 63, 4096, 100_003, 3_000_000)
with open_job() as job:
    others = [rank for rank in range(WORLD) if rank != RANK]
    wrong = []
    for round_number in range(3):
        receives, sends = [], []
        for other in others:
            for number, size in enumerate(SIZES):
                receives.append((other, number, job.receive(other, size, tag=number % 2)))
        for other in others:
            for number, size in enumerate(SIZES):
                data = bytes_of(RANK, other, number + 10 * round_number, size)
                sends.append(job.send(other, data, tag=number % 2))
        for other, number, ticket in reversed(receives):
            got = ended_from(job, ticket, other)
            if got != bytes_of(other, RANK, number + 10 * round_number, SIZES[number]).tobytes():
                wrong.append((other, number, round_number))
        for ticket in sends:
            job.wait(ticket)
            job.release(ticket)
    # Collectives go on in between.
    total = np.frombuffer(ended(job, job.submit(dynamic(job), 0, np.ones(5, np.float32))), np.float32)
    report(wrong=wrong, total=total.tolist())
"""

ENDED_FROM = """
def ended_from(job, ticket, sender):
    job.wait(ticket)
    assert job.source(ticket) == sender, (job.source(ticket), sender)
    got = bytes(job.result(ticket))
    job.release(ticket)
    return got
"""

# A receive is given only when messages with its tag and with others wait already, and the other way round.
ORDER = ENDED_FROM + BYTES + """
from braid import ANY_RANK
with open_job() as job:
    barrier, step = dynamic(job), 0
    def meet():
        global step
        ended(job, job.submit(barrier, step, collective=Collective.BARRIER))
        step += 1
    got = []
    if RANK == 0:
        tickets = [job.send(1, b"%d" % n, tag=n % 3) for n in range(9)]
        meet()
        [job.wait(ticket) or job.release(ticket) for ticket in tickets]
    elif RANK == 1:
        meet()
        for tag in (2, 0, 1):
            got += [ended_from(job, job.receive(0, 1, tag=tag), 0) for _ in range(3)]
    else:
        meet()
    meet()
    if RANK == 2:  # any source: as many as are sent, each from the rank whose number it has
        waiting = [job.receive(ANY_RANK, 1, tag=7) for _ in range(WORLD - 1)]
        meet()
        for ticket in waiting:
            job.wait(ticket)
            assert bytes(job.result(ticket)) == b"%d" % job.source(ticket)
            got.append(b"%d" % job.source(ticket))
            job.release(ticket)
        meet()
        # Now they wait for the receives; one of a given rank takes that one's alone.
        last = WORLD - 1 if WORLD > 3 else 1
        got.append(ended_from(job, job.receive(last, 1, tag=8), last))
        for _ in range(WORLD - 2):
            ticket = job.receive(ANY_RANK, 1, tag=8)
            job.wait(ticket)
            got.append(bytes(job.result(ticket)))
            job.release(ticket)
    else:
        meet()
        ticket = job.send(2, b"%d" % RANK, tag=7)
        job.wait(ticket), job.release(ticket)
        ticket = job.send(2, b"%d" % RANK, tag=8)
        meet()
        job.wait(ticket), job.release(ticket)
    report(got=[one.decode() for one in got])
"""

SEND_AND_RECEIVE = """
job = open_job(**({"timeout": 3} if ARGUMENT == "late" else {}))
say("RUNNING")
if RANK == 0:
    ended(job, job.receive(WORLD - 1, 400, tag=7))
elif RANK == 1:
    ended(job, job.send(0, b"x" * 300, tag=7 if ARGUMENT == "sizes" else 8))
else:
    time.sleep(600)
"""

LEAVE = """
job = open_job()
if RANK == WORLD - 1:
    job.close()
    report(left=True)
else:
    while not os.path.exists(ARGUMENT):
        time.sleep(0.02)
    ended(job, job.send(WORLD - 1, b"x" * 300, tag=5) if RANK == 0 else job.receive(0, 8))
"""

# The last rank sends one message to rank 0 and leaves at once. Rank 0 receives it, and then waits for another one.
# ARGUMENT: what the receives name. With "any", the ranks in between leave, too.
RECEIVE_FROM_LEAVER = ENDED_FROM + """
from braid import ANY_RANK
source = ANY_RANK if ARGUMENT == "any" else WORLD - 1
job = open_job()
if RANK == 0:
    assert ended_from(job, job.receive(source, 300, tag=6), WORLD - 1) == b"x" * 300
    say("RECEIVED")
    ended(job, job.receive(source, 400, tag=7))
elif RANK == WORLD - 1:
    job.send(0, b"x" * 300, tag=6)
elif ARGUMENT == "one":
    time.sleep(600)
job.close()
report(left=True)
"""

# Ranks 0 and 1 exchange a message. Then each waits for the other one, with different tags, until the file is there.
CROSSED = ENDED_FROM + """
job = open_job()
other = 1 - RANK
ticket = job.send(other, b"x" * 1000)
assert ended_from(job, job.receive(other, 1000), other) == b"x" * 1000
job.wait(ticket), job.release(ticket)
tickets = [job.send(other, b"x" * 300, tag=RANK), job.receive(other, 300, tag=RANK)]
say("RUNNING")
while not os.path.exists(ARGUMENT):
    time.sleep(0.02)
tickets += [job.send(other, b"x" * 300, tag=other), job.receive(other, 300, tag=other)]
for ticket in tickets:
    job.wait(ticket), job.release(ticket)
job.close()
report(good=True)
"""


@pytest.mark.parametrize("shape", SHAPES)
def test_every_rank_to_every_other_one(cluster_of, shape):
    nodes, placed = SHAPES[shape]
    settings = {
        "3x1": ("collective.unit_bytes=64KiB", "transport.chunk_bytes=4KiB"),
        # Links lead to the successor alone until a message needs another one.
        "unequal": ("collective.direct_bytes=0", "collective.two_hops_bytes=0"),
    }.get(shape, ())
    for trainer in cluster_of(nodes, *settings).start(ENDED_FROM + ALL_PAIRS, nodes=placed):
        result = trainer.result()
        assert result["wrong"] == []
        assert result["total"] == [len(placed)] * 5


@pytest.mark.parametrize("shape", SHAPES)
def test_tags_order_and_any_source(cluster_of, shape):
    nodes, placed = SHAPES[shape]
    results = [one.result()["got"] for one in cluster_of(nodes).start(ORDER, nodes=placed)]
    assert results[1] == [str(n) for tag in (2, 0, 1) for n in range(9) if n % 3 == tag]
    others = [str(rank) for rank in range(len(placed)) if rank != 2]
    assert sorted(results[2][: len(others)]) == others
    assert results[2][len(others)] == ("1" if len(placed) == 3 else str(len(placed) - 1))
    assert sorted(results[2][len(others) :]) == others


@pytest.mark.parametrize("placed", [[0, 1, 2], [0, 0, 1, 1]], ids=str)
def test_a_receive_from_a_killed_rank_names_both(cluster_of, placed):
    trainers = cluster_of(3).start(SEND_AND_RECEIVE, nodes=placed, argument="tags")
    wait_until_running(trainers)
    trainers[-1].kill()
    error = trainers[0].error()
    expect_named(error, len(placed) - 1, f"node{placed[-1]}")
    assert f"receive of 400 bytes from rank {len(placed) - 1}, tag 7" in error["text"]
    error = trainers[1].error()
    expect_named(error, len(placed) - 1, f"node{placed[-1]}")
    assert "send of 300 bytes to rank 0, tag 8" in error["text"]


def test_a_receive_from_a_killed_node_names_both(cluster_of):
    cluster = cluster_of(3)
    trainers = cluster.start(SEND_AND_RECEIVE, argument="tags")
    wait_until_running(trainers)
    cluster.nodes[2].signal(signal.SIGKILL)
    for trainer in trainers[:2]:
        assert "node 'node2'" in trainer.error()["text"]


@pytest.mark.parametrize("placed", [[0, 1], [0, 0]], ids=str)
def test_ends_of_different_sizes_are_both_named(cluster_of, placed):
    for trainer in cluster_of(2).start(SEND_AND_RECEIVE, nodes=placed, argument="sizes"):
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_MISMATCH"
        assert (
            f"rank 1 on node 'node{placed[1]}' sends 300 bytes with tag 7 to rank 0 on node 'node0', which expects "
            "400 bytes" in error["text"]
        )


def test_a_receive_that_nobody_sends_to_ends_at_its_deadline(cluster_of):
    trainers = cluster_of(2).start(SEND_AND_RECEIVE, nodes=[0, 1], argument="late")
    for trainer in trainers:
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_DEADLINE_EXCEEDED"
        assert "within 3000 ms" in error["text"]
        assert "no such message was sent" in error["text"] or "it was not received" in error["text"]


@pytest.mark.parametrize("placed", [[0, 1, 2], [0, 0, 0]], ids=str)
def test_a_rank_that_left_without_receiving_is_named(cluster_of, placed, tmp_path):
    sign = tmp_path / "left"
    trainers = cluster_of(3).start(LEAVE, nodes=placed, argument=str(sign))
    assert trainers[-1].result()["left"]
    sign.touch()
    error = trainers[0].error()
    expect_named(error, 2, f"node{placed[-1]}")
    assert "left the job" in error["text"] and "300 bytes, tag 5" in error["text"]


@pytest.mark.parametrize("source", ["one", "any"])
@pytest.mark.parametrize("placed", [[0, 1, 2], [0, 0, 1], [2, 1, 0], [0, 1, 1, 0]], ids=str)
def test_a_receive_from_ranks_that_have_left_ends_at_once(cluster_of, placed, source):
    """But what they have sent before is received. The job's deadline is an hour away."""
    trainers = cluster_of(3, "collective.operation_timeout_ms=3600000").start(
        RECEIVE_FROM_LEAVER, nodes=placed, argument=source
    )
    error = trainers[0].error()
    assert error["error"] == "BRAID_ERROR_JOB_FAILED"
    last = len(placed) - 1
    leaver = "all other ranks" if source == "any" else f"rank {last} on node 'node{placed[-1]}'"
    assert f"{leaver} left the job" in error["text"], error
    assert f"receive of 400 bytes, tag 7, at rank 0 on node 'node{placed[0]}'" in error["text"], error
    assert "RECEIVED" in trainers[0].output()


@pytest.mark.parametrize("placed", [[0, 1], [0, 0]], ids=str)
def test_an_operator_sees_messages(cluster_of, placed, tmp_path):
    """In pending, in the metrics and in the timeline."""
    cluster = cluster_of(2)
    go_on = tmp_path / "go on"
    trainers = cluster.start(CROSSED, nodes=placed, argument=str(go_on), job="crossed")
    wait_until_running(trainers)
    node = trainers[0].node

    def ask(*arguments: str) -> str:
        done = braidctl(node.socket, *arguments, "--job", "crossed")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def waiting() -> dict:
        return json.loads(ask("pending", "--json"))

    until(lambda: len(waiting()["messages"]) == 4, "both ranks wait")
    told = waiting()
    assert told["operations"] == [] and told["messages_pending"] == 4
    assert {(one["end"], one["rank"], one["peer"], one["tag"]) for one in told["messages"]} == {
        (end, rank, 1 - rank, rank) for end in ("send", "receive") for rank in (0, 1)
    }
    for one in told["messages"]:
        assert (one["node"], one["peer_node"]) == (f"node{placed[one['rank']]}", f"node{placed[one['peer']]}")
        assert (one["bytes"], one["is_on_its_way"]) == (300, False)
    text = ask("pending")
    assert "job 'crossed': 4 ends of messages are pending" in text and "the send" in text
    ranks_here = placed.count(placed[0])
    series = metrics(node)
    for direction in ("sent", "received"):
        labels = f'{{training_job="crossed",direction="{direction}"}}'
        assert series["braid_job_messages_total" + labels] == ranks_here
        assert series["braid_job_message_bytes_total" + labels] == 1000 * ranks_here
        assert series["braid_job_messages_pending" + labels] == ranks_here
    spans = [one for one in json.loads(ask("trace"))["traceEvents"] if one.get("ph") == "X"]
    named = [one for one in spans if one["name"] == "messages from rank 0 to rank 1"]
    assert any(one["args"].get("bytes") == 1000 for one in named), spans
    assert any(one["args"].get("state") == "waits for other nodes, or memory" for one in named), spans
    go_on.touch()
    for trainer in trainers:
        assert trainer.result()["good"]
