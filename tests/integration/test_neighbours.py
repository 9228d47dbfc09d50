# SPDX-License-Identifier: Apache-2.0
"""Trainers that do to their daemon, and to other users' trainers on it, what they can."""

import pytest
from real_cluster import SUM_FOREVER, end_running, needs_daemons, wait_until_running

pytestmark = [needs_daemons, pytest.mark.sanitized]

# Ids of sets as they follow from names and counts alone, and a count for the id that is wanted.
CRAFT = """
ALL = 2**64 - 1

def fnv(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & ALL
    return value

def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & ALL
    x = (x ^ x >> 27) * 0x94D049BB133111EB & ALL
    return x ^ x >> 31

def unmix(x):
    x = (x ^ x >> 31 ^ x >> 62) * 0x319642B2D24D8EC3 & ALL
    x = (x ^ x >> 27 ^ x >> 54) * 0x96DE1B173F119089 & ALL
    return x ^ x >> 30 ^ x >> 60

def id_of(tensors):
    value = fnv("set")
    for order, (name, count) in enumerate(tensors):
        value = mix(mix(value ^ mix(fnv(name) + count & ALL)) ^ order << 8)
    return value

def crafted(wanted, tensors, name):
    last = unmix(unmix(wanted) ^ len(tensors) << 8) ^ id_of(tensors)
    return unmix(last) - fnv(name) & ALL

def register(job, tensors):
    return job.register([TensorSpec(name, DType.FLOAT32, count, order, planned=True)
                         for order, (name, count) in enumerate(tensors)])
"""
# A set of one tensor takes the place of another one, which does not have it.
TWO_SETS = (
    CRAFT
    + """
with open_job() as job:
    # Of the first 445,928 names none has a count that a tensor may have.
    name, second = "445928 is the first", [("445928 is the second", 100)]
    count = crafted(id_of(second), [], name)
    assert count < 1 << 46 and id_of([(name, count)]) == id_of(second)
    register(job, [(name, count)])
    tensor = register(job, second)[0]
    got = np.frombuffer(ended(job, job.submit(tensor, 0, np.full(100, 7, np.float32))), np.float32)
    report(sum=float(got.sum()))
"""
)
# Rank 1 says that 'a' is short, rank 0 that it is long: what lies behind rank 1's arena would be
# in the sum.
TWO_RANKS = (
    CRAFT
    + """
with open_job(arena_bytes=1 << 24) as job:
    honest = [("a", 2_000_000), ("c", 4), ("alone", 3_000_000)]
    mine = honest
    if RANK == 1:
        mine = [("a", 4), ("c", 1_362_572)]  # the first one that has such a count
        count = crafted(id_of(honest), mine, "alone")
        mine.append(("alone", count))
        assert count < 1 << 46 and id_of(mine) == id_of(honest)
    handles = register(job, mine)
    tickets = [job.submit(handles[i], 0, np.zeros(mine[i][1], np.float32)) for i in (0, 1)]
    report(got=len(ended(job, tickets[0])))
"""
)


def test_crafted_sets_are_not_taken_for_each_other(cluster_of):
    cluster = cluster_of(1)
    innocent = cluster.start(SUM_FOREVER, nodes=[0, 0])
    wait_until_running(innocent)
    assert cluster.start(TWO_SETS)[0].result()["sum"] == 700
    # The last one to register is refused; nobody gets a sum.
    errors = [trainer.error() for trainer in cluster.start(TWO_RANKS, nodes=[0, 0])]
    refused = [one["text"] for one in errors if one["error"] == "BRAID_ERROR_MISMATCH"]
    assert len(refused) == 1 and "among 3 planned tensors that are not those of" in refused[0]
    end_running(innocent)
    cluster.expect_healthy(nodes=[0, 0])


# libbraid refuses such counts by itself: what it says is changed on its way to the daemon.
COUNTS_THAT_WRAP = """
import socket, struct, tempfile, threading
from braid import Update, UpdateAction

COUNT, MARK = 100_000, 123_456_789
FOLDER = tempfile.TemporaryDirectory()

def say_instead_of_mark(number):
    path, mine = os.environ["BRAID_SOCKET"], FOLDER.name + "/s"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(mine)
    listener.listen()
    os.environ["BRAID_SOCKET"] = mine

    def pass_on(here, there):
        while True:
            data, fds, _, _ = socket.recv_fds(here, 1 << 16, 16)
            if not data:
                return there.shutdown(socket.SHUT_WR)
            socket.send_fds(there, [data.replace(struct.pack("<Q", MARK), struct.pack("<Q", number))], fds)
            for fd in fds:
                os.close(fd)

    def serve():
        client, _ = listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(path)
        threading.Thread(target=pass_on, args=(server, client), daemon=True).start()
        pass_on(client, server)

    threading.Thread(target=serve, daemon=True).start()

def register(names, counts):
    return job.register([TensorSpec(name, DType.FLOAT32, count, order, planned=True, **ARGUMENT)
                         for order, (name, count) in enumerate(zip(names, counts))])

def give(tensor):
    update = {"update": Update(action=UpdateAction.LOAD)} if "state_slots" in ARGUMENT else {}
    return np.frombuffer(ended(job, job.submit(tensor, 0, np.ones(COUNT, np.float32), **update)), np.float32)

say_instead_of_mark(2**64 - COUNT + 16)
job = open_job()
for names, counts in ((["w", "rest"], [COUNT, MARK]), (["a", "b", "c"], [1 << 45] * 3)):
    try:
        give(register(names, counts)[0])
    except braid.BraidError as error:
        report_error(error)
report(sum=float(give(register(["w"], [COUNT])[0]).sum()))
job.close()
"""


def test_counts_that_do_not_add_up_are_refused_and_nobody_notices(cluster_of):
    cluster = cluster_of(2)
    innocent = cluster.start(SUM_FOREVER, nodes=[0, 1])
    wait_until_running(innocent)
    # What an owner keeps for each weight, and what a codec keeps on each of several nodes.
    for argument, nodes in (({"state_slots": 1}, [0]), ({"codec": "int8"}, [0, 1])):
        for trainer in cluster.start(COUNTS_THAT_WRAP, nodes=nodes, argument=argument):
            assert trainer.end() == 0, trainer.output()
            wraps, too_large, last = trainer.results()
            assert wraps["error"] == too_large["error"] == "BRAID_ERROR_INVALID_ARGUMENT"
            assert "tensor 'rest' has 18446744073709451632 elements of float32" in wraps["text"]
            assert "a tensor has 281474976710656 bytes at most" in wraps["text"]
            assert "with tensor 'c' (35184372088832 elements of float32) the planned" in too_large["text"]
            assert abs(last["sum"] - 100_000 * len(nodes)) < 1, last
    end_running(innocent)
    cluster.expect_healthy(nodes=[0, 1])
