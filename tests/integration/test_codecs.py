# SPDX-License-Identifier: Apache-2.0
"""Gradients that travel encoded, through real daemons: close to the exact mean, the same bits on all ranks."""

import pytest
from planned_training import ANY_GAIN
from real_cluster import PEERS_WAIT, needs_daemons
from test_operations import metrics

pytestmark = needs_daemons

# Plans change while codecs keep what they have lost.
EXACT = ("plan.planner=exact", ANY_GAIN)

# ARGUMENT: the codec; whether each third tensor goes without one. The gradient of each rank stays the same, so the
# mean over the steps of what comes back nears the exact mean, also where single steps are far from it.
TRAIN = """
settings = {"steps": 30, "mixed": False, "reduction": "AVERAGE", **ARGUMENT}
job = open_job()
reduction = Reduction[settings["reduction"]]
counts = [1 + (i * 7919) % 3000 for i in range(24)]
counts[12] = 300_000
codecs = ["" if settings["mixed"] and i % 3 == 0 else settings["codec"] for i in range(len(counts))]
handles = job.register(
    [TensorSpec(f"layer{i}", DType.FLOAT32, c, backward_order=i, planned=True, codec=k)
     for i, (c, k) in enumerate(zip(counts, codecs))])

def gradient(rank, i):
    values = np.random.default_rng(1000 * rank + i).standard_normal(counts[i]).astype(np.float32)
    values[values.size // 3 : values.size // 2] = 0  # for blocks that are not sent
    return values

def mean(i):
    total = sum(gradient(rank, i).astype(np.float64) for rank in range(WORLD))
    return total / WORLD if reduction == Reduction.AVERAGE else total

exact = np.concatenate([mean(i) for i in range(len(counts))])
plain = np.concatenate([np.full(c, not k) for c, k in zip(counts, codecs)])
mine = [gradient(RANK, i) for i in range(len(counts))]
sha = hashlib.sha256()
got = np.zeros(exact.size)
first_error = plain_error = 0.0
for step in range(settings["steps"]):
    tickets = [job.submit(h, step, m, reduction=reduction) for h, m in zip(handles, mine)]
    results = [ended(job, ticket) for ticket in tickets]
    sha.update(b"".join(results))
    result = np.concatenate([np.frombuffer(r, np.float32) for r in results]).astype(np.float64)
    got += result
    plain_error = max(plain_error, float(np.abs(result - exact)[plain].max(initial=0)))
    if step == 0:
        first_error = float(np.linalg.norm(result - exact) / np.linalg.norm(exact))
job.close()
mean_error = float(np.linalg.norm(got / settings["steps"] - exact) / np.linalg.norm(exact))
report(first_error=first_error, mean_error=mean_error, plain_error=plain_error, digest=sha.hexdigest())
"""

# The most that the first step, and the mean of all, may be away from the exact mean, relative to it.
CODECS = {
    "none": (1e-6, 1e-6),
    "bf16": (0.01, 0.01),
    "fp16": (1e-3, 1e-3),
    "int8": (0.02, 0.02),
    "int8:rounding=stochastic": (0.04, 0.02),
    "int4": (0.35, 0.35),
    "fp8-e4m3": (0.1, 0.1),
    "fp8-e5m2": (0.2, 0.2),
    "qsgd": (0.5, 0.2),
    "terngrad": (10, 2),
    "natural": (0.5, 0.2),
    "block-sparse": (1e-6, 1e-6),
    "ef-sign": (2, 0.4),
    "1bit": (2, 0.4),
    "2bit:threshold=4": (2, 0.2),
    "2bit:threshold=4,full-every=5": (2, 0.2),
    "topk:ratio=0.1": (1, 0.5),
}


def expect_close(trainers, first: float, mean: float) -> None:
    results = [trainer.result() for trainer in trainers]
    assert len({result["digest"] for result in results}) == 1
    assert results[0]["first_error"] <= first
    assert results[0]["mean_error"] <= mean
    assert results[0]["plain_error"] <= 1e-5


@pytest.mark.parametrize("codec", CODECS)
def test_all_ranks_get_the_same_close_mean(cluster_of, codec):
    trainers = cluster_of(4, *EXACT).start(TRAIN, nodes=[0, 1, 2, 3], argument={"codec": codec})
    expect_close(trainers, *CODECS[codec])


@pytest.mark.parametrize("codec", ["sign-vote", "dgc:ratio=0.01"])
def test_all_ranks_get_the_same_bits_of_what_is_no_mean(cluster_of, codec):
    trainers = cluster_of(4, *EXACT).start(TRAIN, nodes=[0, 1, 2, 3], argument={"codec": codec})
    assert len({trainer.result()["digest"] for trainer in trainers}) == 1


@pytest.mark.parametrize("placed", [[0, 0, 1, 1, 2], [0, 1], [0, 0]], ids=str)
@pytest.mark.parametrize("codec", ["int8", "2bit:threshold=4"])
def test_nodes_may_have_several_ranks_and_one_node_sends_nothing(cluster_of, codec, placed):
    trainers = cluster_of(3, *EXACT).start(TRAIN, nodes=placed, argument={"codec": codec, "mixed": True})
    expect_close(trainers, *((1e-5, 1e-5) if set(placed) == {0} else CODECS[codec]))


def test_sums_have_codecs_as_averages_do(cluster_of):
    argument = {"codec": "int8", "reduction": "SUM", "mixed": True}
    expect_close(cluster_of(3, *EXACT).start(TRAIN, nodes=[0, 1, 2], argument=argument), *CODECS["int8"])


# Four steps are submitted before the first one is waited for: with error memory each begins after the one before it.
AHEAD = """
job = open_job()
handles = job.register([TensorSpec(f"layer{i}", DType.FLOAT32, 50_000 + i, backward_order=i, planned=True,
                                   codec="2bit:threshold=1") for i in range(8)])
mine = [np.random.default_rng(9 * RANK + i).standard_normal(50_000 + i).astype(np.float32) for i in range(8)]
got = []
for first in range(0, 24, ARGUMENT):
    tickets = [job.submit(h, first + ahead, m, reduction=Reduction.AVERAGE)
               for ahead in range(ARGUMENT) for h, m in zip(handles, mine)]
    got += [ended(job, ticket) for ticket in tickets]
job.close()
report(digest=digest(*got))
"""


def test_steps_that_are_submitted_ahead_keep_their_order(cluster_of):
    cluster = cluster_of(3, "plan.planner=first")
    runs = [cluster.start(AHEAD, nodes=[0, 1, 2], argument=ahead) for ahead in (1, 4)]
    assert len({trainer.result()["digest"] for trainers in runs for trainer in trainers}) == 1


# --- bytes on the wire ---

STEPS, ELEMENTS = 3, 3_000_000
SUMS = f"""
job = open_job()
tensor = job.register([TensorSpec("weights", DType.FLOAT32, {ELEMENTS}, planned=True, codec=ARGUMENT)])[0]
mine = np.random.default_rng(RANK).standard_normal({ELEMENTS}).astype(np.float32)
for step in range({STEPS}):
    ended(job, job.submit(tensor, step, mine, reduction=Reduction.AVERAGE))
job.close()
report()
"""
# Bits that are sent for each element of a part, and of a sum: the table of docs/compression.md.
BITS = {
    "none": (32, 32),
    "bf16": (16, 16),
    "fp16": (16, 16),
    "int8": (8 + 32 / 256,) * 2,
    "int4": (4 + 32 / 64,) * 2,
    "fp8-e4m3": (8 + 32 / 256,) * 2,
    "ef-sign": (1 + 32 / 4096,) * 2,
    "sign-vote": (1, 1),
    "1bit": (1 + 64 / 4096,) * 2,
    "2bit:threshold=4": (2, 4 + 32 / 4096),
    "2bit:threshold=4,full-every=3": ((2 * 2 + 32) / 3, (2 * (4 + 32 / 4096) + 32) / 3),
    "topk:ratio=0.01": (0.64, 4 * 0.64),
    "qsgd": (8 + 32 / 512,) * 2,
    "terngrad": (2 + 32 / 512,) * 2,
    "natural": (9, 9),
}


@pytest.mark.parametrize("codec", BITS)
def test_as_many_bytes_are_sent_as_the_table_says(cluster_of, codec):
    # With one flow no chunk is sent over another one, too, because it is overdue.
    cluster = cluster_of(4, "plan.planner=first", "transport.flows_per_link=1", PEERS_WAIT)

    def sent() -> float:
        return sum(metrics(node)['braid_wire_bytes_total{direction="sent"}'] for node in cluster.nodes)

    before = sent()
    for trainer in cluster.start(SUMS, nodes=[0, 1, 2, 3], argument=codec):
        trainer.result()
    # Each element's part leaves the nodes that do not own it, and its sum goes to as many.
    part, total = BITS[codec]
    assert sent() - before == pytest.approx(STEPS * ELEMENTS * 3 * (part + total) / 8, rel=0.01)


# --- what goes wrong ---

REGISTER = """
spec = {"dtype": "FLOAT32", "planned": True, "codecs": ["int8", "int8"], "reduction": "AVERAGE", **ARGUMENT}
job = open_job()
tensor = job.register([TensorSpec("weights", DType[spec["dtype"]], 100, planned=spec["planned"],
                                  codec=spec["codecs"][RANK])])[0]
ended(job, job.submit(tensor, 0, np.ones(100, np.float32), reduction=Reduction[spec["reduction"]]))
job.close()
report()
"""


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ({"codecs": ["int9", "int9"]}, "tensor 'weights': no codec is named 'int9'; there are none, bf16,"),
        ({"codecs": ["int8:block=3"] * 2}, "tensor 'weights': codec int8: block=3: right is a multiple of 16"),
        ({"dtype": "FLOAT64"}, "'weights' has the codec int8 and is of float64; codecs are for float32"),
        ({"planned": False}, "'weights' has the codec int8 and is not planned"),
        ({"reduction": "MAX"}, "which allows sums and averages, and no max"),
        ({"codecs": ["int8", "int4"]}, "ranks disagree about 'weights' step 0"),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(value),
)
def test_what_cannot_be_is_named(cluster_of, argument, text):
    trainers = cluster_of(2).start(REGISTER, nodes=[0, 1], argument=argument)
    texts = [trainer.error()["text"] for trainer in trainers]
    assert all(text in each for each in texts), texts
    if "ranks disagree" in text:
        assert all("with codec int8" in each and "with codec int4" in each for each in texts), texts


def test_the_operator_says_which_codecs_there_may_be(cluster_of):
    cluster = cluster_of(2, "debug.codecs=bf16,int8")
    for trainer in cluster.start(REGISTER, nodes=[0, 1], argument={"codecs": ["int8:block=64"] * 2}):
        trainer.result()
    for trainer in cluster.start(REGISTER, nodes=[0, 1], argument={"codecs": ["2bit"] * 2}):
        text = "'weights' has the codec 2bit, which this node does not allow; debug.codecs allows none, bf16, int8"
        assert text in trainer.error()["text"]
