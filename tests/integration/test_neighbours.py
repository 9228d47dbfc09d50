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
    for i in range(1000):
        name, second = f"{i} is the first", [(f"{i} is the second", 100)]
        count = crafted(id_of(second), [], name)
        if count < 1 << 60:
            break
    assert id_of([(name, count)]) == id_of(second)
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
        for i in range(1000):
            mine = [("a", 4), ("c", 4)] if i == 0 else [("a", 4), ("c", 4 + i)]
            count = crafted(id_of(honest), mine, "alone")
            if count < 1 << 60:
                break
        mine.append(("alone", count))
        assert id_of(mine) == id_of(honest)
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
    # Whoever registers last is refused; nobody gets a sum.
    errors = [trainer.error() for trainer in cluster.start(TWO_RANKS, nodes=[0, 0])]
    refused = [one["text"] for one in errors if one["error"] == "BRAID_ERROR_MISMATCH"]
    assert len(refused) == 1 and "among 3 planned tensors that are not those of" in refused[0]
    end_running(innocent)
    cluster.expect_healthy(nodes=[0, 0])
