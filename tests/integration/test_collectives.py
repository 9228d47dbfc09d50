# SPDX-License-Identifier: Apache-2.0
"""Every collective against a reference, and the same bits everywhere and every time."""

import pytest
from real_cluster import needs_daemons

pytestmark = needs_daemons

# Ranks of a node need not be neighbours, and nodes need not have equally many.
SHAPES = {
    "1x3": (1, [0, 0, 0]),
    "3x1": (3, [0, 1, 2]),
    "2x2": (2, [0, 0, 1, 1]),
    "unequal": (3, [2, 0, 2, 1, 0, 2]),
}

RUN = """
from reference import encode, given, reduced
COUNTS = (0, 1, 3, 1000, 100003)
with open_job() as job:
    tensor, step, wrong = dynamic(job), 0, []

    def run(collective, dtype, count, mine, expected, **more):
        global step
        data = np.frombuffer(encode(mine, dtype), np.uint8).copy()
        address = data.ctypes.data if data.size else None
        ticket = job.submit(tensor, step, address, collective=collective, dtype=dtype, count=count,
                            **more)
        job.wait(ticket)
        if collective == Collective.ALL_GATHER:
            got = b"".join(bytes(job.result_of_rank(ticket, r)) for r in range(WORLD))
        else:
            got = bytes(job.result(ticket))
        job.release(ticket)
        if got != expected:
            wrong.append(f"step {step}: {collective.name} {dtype.name} {count} {more}")
        step += 1
"""

ALL = RUN + """
    for dtype in DType:
        for count in COUNTS:
            for reduction in Reduction:
                inputs = [given(r, count, step, dtype, reduction) for r in range(WORLD)]
                run(Collective.ALL_REDUCE, dtype, count, inputs[RANK],
                    reduced(inputs, dtype, reduction), reduction=reduction)
                wide = [given(r, count * WORLD, step, dtype, reduction) for r in range(WORLD)]
                block = [one[count * RANK : count * (RANK + 1)] for one in wide]
                run(Collective.REDUCE_SCATTER, dtype, count, wide[RANK],
                    reduced(block, dtype, reduction), reduction=reduction)
            inputs = [given(r, count, step, dtype, Reduction.SUM) for r in range(WORLD)]
            root = step % WORLD
            run(Collective.BROADCAST, dtype, count, inputs[RANK], encode(inputs[root], dtype),
                root=root)
            run(Collective.ALL_GATHER, dtype, count, inputs[RANK],
                b"".join(encode(one, dtype) for one in inputs))
        run(Collective.BARRIER, dtype, 0, np.empty(0), b"")
    report(steps=step, wrong=wrong)
"""

# These need links between all nodes.
EXCHANGES = RUN + """
    for dtype in DType:
        for count in COUNTS:
            inputs = [given(r, count, step, dtype, Reduction.SUM) for r in range(WORLD)]
            root = step % WORLD
            run(Collective.GATHER, dtype, count, inputs[RANK],
                b"".join(encode(one, dtype) for one in inputs) if RANK == root else b"", root=root)
            wide = [given(r, count * WORLD, step, dtype, Reduction.SUM) for r in range(WORLD)]
            run(Collective.SCATTER, dtype, count, wide[root] if RANK == root else np.empty(0),
                encode(wide[root][count * RANK : count * (RANK + 1)], dtype), root=root)
            run(Collective.ALL_TO_ALL, dtype, count, wide[RANK],
                b"".join(encode(one[count * RANK : count * (RANK + 1)], dtype) for one in wide))
            # From one rank to another as many as the sum of their numbers says.
            sizes = [[count * ((r + to) % 3) for to in range(WORLD)] for r in range(WORLD)]
            uneven = [given(r, sum(sizes[r]), step, dtype, Reduction.SUM) for r in range(WORLD)]
            parts = [uneven[r][sum(sizes[r][:RANK]):][: sizes[r][RANK]] for r in range(WORLD)]
            run(Collective.ALL_TO_ALL, dtype, 0, uneven[RANK],
                b"".join(encode(one, dtype) for one in parts),
                input_splits=sizes[RANK], output_splits=[one[RANK] for one in sizes])
    report(steps=step, wrong=wrong)
"""

# Floats of very different sizes, so that any other order of additions would give other bits.
BITS = """
with open_job() as job:
    tensor, sums = dynamic(job), []
    random = np.random.default_rng(100 + RANK)
    for step, count in enumerate((1, 3, 1000, 100003, 1_000_001, 300_000)):
        mine = (random.standard_normal(count) * 10.0 ** random.integers(-6, 6, count))
        mine = mine.astype(np.float32)
        tickets = [job.submit(tensor, step * 2, mine)]
        tickets += [job.submit(tensor, step * 2 + 1, mine.astype(np.float16), reduction=1)]
        sums += [ended(job, ticket) for ticket in tickets]
    report(digest=digest(*sums))
"""

@pytest.mark.parametrize("shape", SHAPES)
def test_every_collective_of_every_type_and_size_is_exact(cluster_of, shape):
    nodes, placed = SHAPES[shape]
    # In small pieces; and where links lead to the successor alone until others are needed.
    settings = {
        "3x1": ("collective.unit_bytes=64KiB", "transport.chunk_bytes=4KiB"),
        "unequal": ("collective.direct_bytes=0",),
    }.get(shape, ())
    cluster = cluster_of(nodes, *settings)
    for script, steps in ((ALL, 7 * (5 * 12 + 1)), (EXCHANGES, 7 * 5 * 4)):
        for trainer in cluster.start(script, nodes=placed):
            result = trainer.result()
            assert result["steps"] == steps
            assert result["wrong"] == []


@pytest.mark.parametrize("shape", ["3x1", "2x2"])
def test_the_same_bits_on_every_rank_and_in_every_run(cluster_of, shape):
    nodes, placed = SHAPES[shape]
    digests = set()
    for settings in (
        (),
        ("transport.flows_per_link=1", "collective.streams=1"),
        ("transport.flows_per_link=9", "collective.streams=7", "transport.window_bytes=128KiB"),
    ):
        cluster = cluster_of(nodes, *settings)
        for _ in range(2):
            digests |= {one.result()["digest"] for one in cluster.start(BITS, nodes=placed)}
    assert len(digests) == 1
