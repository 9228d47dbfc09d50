# SPDX-License-Identifier: Apache-2.0
"""Tensors that nobody uses any more go before their job ends, on all nodes."""

import pytest
from braid_build import IS_SANITIZED
from real_cluster import needs_daemons
from second_user import GROUP_SETTING, needs_nobody, start_neighbour, way_opened

pytestmark = [needs_daemons, pytest.mark.sanitized]

# What 90 registrations take that stay is almost four times as much.
RSS_GROWTH_MAX = (128 if IS_SANITIZED else 16) << 20
TENSORS_MAX = 5000

# Folds of a cross-validation, whose models differ in their names.
FOLDS = """
def rss_bytes():
    with open(f"/proc/{ARGUMENT['daemon']}/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))

def register(fold):
    return job.register([braid.TensorSpec(f"fold{fold}/layer{i}", count=10, backward_order=i, planned=True)
                         for i in range(1000)])

def train(handles):
    wrong = 0
    for step in range(3):
        tickets = [job.submit(handle, step, array("f", [step + 1.0]) * 10) for handle in handles]
        for ticket in tickets:
            job.wait(ticket)
            wrong += job.result(ticket).cast("f")[9] != 2.0 * (step + 1)
            job.release(ticket)
    return wrong

job = open_job("folds", ARGUMENT["rank"], 2, arena_bytes=1 << 24)
wrong, early = 0, 0
for fold in range(ARGUMENT["folds"]):
    handles = register(fold)
    wrong += train(handles)
    job.unregister(handles)
    if fold == 9:
        early = rss_bytes()
grown = rss_bytes() - early
kept, refusal = [], ""
try:
    while len(kept) < 9:
        kept.append(register(f"kept{len(kept)}"))
except braid.BraidError as error:
    refusal = str(error)
report(wrong=wrong, grown=grown, kept=len(kept), refusal=refusal)
job.close()
"""


@needs_nobody
def test_a_hundred_models_one_after_the_other_leave_nothing(cluster_of):
    cluster = cluster_of(2, GROUP_SETTING, f"debug.user_tensors_max={TENSORS_MAX}")
    folds = 40 if IS_SANITIZED else 100
    with way_opened(cluster.nodes[0].socket), way_opened(cluster.nodes[1].socket):
        trainers = [
            start_neighbour(
                cluster, FOLDS, {"rank": rank, "daemon": node.daemon_pid, "folds": folds}, on_node=rank
            )
            for rank, node in enumerate(cluster.nodes)
        ]
        for trainer in trainers:
            result = trainer.result()
            assert result["wrong"] == 0
            assert result["grown"] < RSS_GROWTH_MAX, f"grew by {result['grown'] >> 20} MiB"
            assert result["kept"] == TENSORS_MAX // 1000
            limit = f"would be beyond the {TENSORS_MAX} that a user may have"
            assert limit in result["refusal"]
    cluster.expect_healthy()


# What libbraid would not say it says by itself, over libbraid's connection.
LIAR = """
import re, socket, struct

def daemon_socket():
    for fd in os.listdir("/proc/self/fd"):
        try:
            one = socket.socket(fileno=os.dup(int(fd)))
            if one.family == socket.AF_UNIX and one.getpeername():  # those of a pair have no names
                one.setblocking(True)
                return one
        except OSError:
            pass
    raise AssertionError("no connection")

def received(length):
    data = b""
    while len(data) < length:
        data += daemon.recv(length - len(data))
    return data

UNREGISTER_TENSORS = 21

def unregister(first, count):
    # A table of the body's kind and place, then the body's.
    message = struct.pack("<I4HiIB3x", 12, 8, 12, 8, 4, 8, 16, UNREGISTER_TENSORS)
    message += struct.pack("<4HiII", 8, 12, 4, 8, 8, first, count)
    daemon.sendall(struct.pack("<I", len(message)) + message)
    reply = received(struct.unpack("<I", received(4))[0])
    texts = re.findall(rb"[ -~]{12,}", reply)
    report(first=first, count=count, text=texts[0].decode() if texts else "")

def submit(tensor, step):
    return job.submit(tensor, step, np.ones(4, np.float32))

def sum_of(ticket):
    return float(np.frombuffer(ended(job, ticket), np.float32)[0])

job = open_job(arena_bytes=1 << 20)
weights = [TensorSpec(f"w{i}", DType.FLOAT32, 4, i, planned=ARGUMENT["planned"]) for i in range(3)]
first, second, third = job.register(weights)
other = job.register([TensorSpec("other", DType.FLOAT32, 4)])[0]
daemon = daemon_socket()
tickets = [submit(tensor, 0) for tensor in (first, second, third)]
sums = [sum_of(ticket) for ticket in tickets]
for wrong in ((77, 1), (2**32 - 1, 2**32 - 1), (first, 2), (second, 2), (first, 4), (first, 0), (0, 2**32 - 1)):
    unregister(*wrong)
tickets = [submit(tensor, 1) for tensor in (first, second, third)]
unregister(first, 3)
for ticket in tickets:
    ended(job, ticket)
unregister(first, 3)
unregister(first, 3)
report(sums=sums, other=sum_of(submit(other, 0)))
while not os.path.exists(ARGUMENT["go"]):
    time.sleep(0.01)
sum_of(submit(second, 2))  # which the daemon knows no more
"""


@pytest.mark.parametrize("planned", [False, True], ids=["plain", "planned"])
def test_who_lies_about_it_is_told_so(cluster_of, tmp_path, planned):
    cluster = cluster_of(2)
    go = tmp_path / "go"
    trainers = cluster.start(LIAR, argument={"planned": planned, "go": str(go)})
    for trainer in trainers:
        trainer.wait_for('"other"')
    go.touch()  # the first to go on ends the job of both
    for trainer in trainers:
        error = trainer.error()
        assert "submitted tensor 1, which it has not registered" in error["text"], error
        *said, sums, _ = trainer.results()
        texts = [one["text"] for one in said]
        assert texts[:2] == ["tensor 77 is not registered", "tensor 4294967295 is not registered"]
        assert all("registration; that of tensor" in text for text in texts[2:7]), texts
        assert texts[7].endswith("operations of theirs that were not given back: 3")
        assert texts[8:] == ["", "tensor 0 is not registered"]
        assert sums["sums"] == [2, 2, 2] and sums["other"] == 2
    cluster.expect_healthy()
