# SPDX-License-Identifier: Apache-2.0
"""Weights that the daemons update: the optimizer's trajectory, and the same bits on all ranks."""

import pytest
from planned_training import ANY_GAIN, expect_changes, stop_after_a_change
from real_cluster import needs_daemons

pytestmark = needs_daemons

# Plans change while owners keep what they own.
EXACT = ("plan.planner=exact", ANY_GAIN)

# What the lines below have in common. Each tensor has a learning rate and a decay of its own.
WEIGHTS = """
from braid import Optimizer, StateBits, StateSlot, Update, UpdateAction, UpdateFlag

OPTIMIZERS = {
    "sgd": (1, dict(optimizer=Optimizer.SGD)),
    "momentum": (2, dict(optimizer=Optimizer.SGD, momentum=0.9, dampening=0.1, weight_decay=0.01)),
    "nesterov": (2, dict(optimizer=Optimizer.SGD, momentum=0.9, weight_decay=0.01,
                         flags=UpdateFlag.NESTEROV | UpdateFlag.DECOUPLED_DECAY)),
    "adam": (3, dict(optimizer=Optimizer.ADAM, momentum=0.9, second_momentum=0.999, epsilon=1e-8, weight_decay=0.01)),
    "adamw": (3, dict(optimizer=Optimizer.ADAM, momentum=0.9, second_momentum=0.99, epsilon=1e-8, weight_decay=0.01,
                      flags=UpdateFlag.DECOUPLED_DECAY)),
    "lion": (2, dict(optimizer=Optimizer.LION, momentum=0.9, second_momentum=0.99, weight_decay=0.01,
                     flags=UpdateFlag.DECOUPLED_DECAY)),
}
NUMPY = {DType.FLOAT32: np.float32, DType.FLOAT64: np.float64, DType.FLOAT16: np.float16, DType.BFLOAT16: np.uint16}


def load(job, handles, step, values, slot=StateSlot.WEIGHTS, bits=StateBits.ROUNDED):
    update = Update(action=UpdateAction.LOAD, slot=slot, bits=bits)
    return [job.submit(h, step, v, update=update) for h, v in zip(handles, values)]


def fetch(job, handles, step, slot=StateSlot.WEIGHTS, bits=StateBits.ROUNDED):
    update = Update(action=UpdateAction.FETCH, slot=slot, bits=bits)
    return [job.submit(h, step, None, update=update) for h in handles]


def rate(i):
    return 0.01 * (1 + i % 3)


def send(job, handles, step, gradients, count, action=UpdateAction.APPLY, reduction=Reduction.AVERAGE, **fields):
    return [job.submit(h, step, g, reduction=reduction,
                       update=Update(action=action, count=count, learning_rate=rate(i), **fields))
            for i, (h, g) in enumerate(zip(handles, gradients))]


def all_ended(job, tickets):
    return [ended(job, ticket) for ticket in tickets]
"""

TRAIN = WEIGHTS + """
settings = {"optimizer": "adamw", "dtype": "FLOAT32", "steps": 40, **ARGUMENT}
dtype = DType[settings["dtype"]]
slots, fields = OPTIMIZERS[settings["optimizer"]]
job = open_job()
counts = [1 + (i * 7919) % 3000 for i in range(24)]
counts[12] = 300_000
handles = job.register([TensorSpec(f"layer{i}", dtype, c, backward_order=i, planned=True, state_slots=slots)
                        for i, c in enumerate(counts)])


def numbers(seed, i):
    # Multiples of 2^-6, of which all types add a few exactly.
    values = np.round(np.random.default_rng([seed, i]).uniform(-2, 2, counts[i]) * 64) / 64
    return values.astype(NUMPY[dtype])


class Reference:
    # The optimizer once more, in float64, on the gradients of all ranks.
    def __init__(self, i):
        self.i, self.w = i, numbers(99, i).astype(np.float64)
        self.m, self.v = np.zeros_like(self.w), np.zeros_like(self.w)

    def step(self, g, t):
        lr, wd, one = rate(self.i), fields.get("weight_decay", 0), fields.get("momentum", 0)
        flags, two = fields.get("flags", 0), fields.get("second_momentum", 0)
        if flags & UpdateFlag.DECOUPLED_DECAY:
            self.w *= 1 - lr * wd
        else:
            g = g + wd * self.w
        if fields["optimizer"] == Optimizer.SGD:
            self.m = g if t == 1 else one * self.m + (1 - fields.get("dampening", 0)) * g
            self.w -= lr * (g + one * self.m if flags & UpdateFlag.NESTEROV else self.m if one else g)
        elif fields["optimizer"] == Optimizer.ADAM:
            self.m = one * self.m + (1 - one) * g
            self.v = two * self.v + (1 - two) * g * g
            self.w -= lr * self.m / (1 - one**t) / (np.sqrt(self.v / (1 - two**t)) + fields["epsilon"])
        else:
            self.w -= lr * np.sign(one * self.m + (1 - one) * g)
            self.m = two * self.m + (1 - two) * g


references = [Reference(i) for i in range(len(counts))]
all_ended(job, load(job, handles, 0, [numbers(99, i) for i in range(len(counts))]))
sha, worst = hashlib.sha256(), 0.0
for step in range(1, settings["steps"] + 1):
    results = all_ended(job, send(job, handles, step, [numbers(1000 * step + RANK, i) for i in range(len(counts))],
                                  step, **fields))
    sha.update(b"".join(results))
    for i, (reference, result) in enumerate(zip(references, results)):
        gradients = [numbers(1000 * step + rank, i).astype(np.float64) for rank in range(WORLD)]
        reference.step(sum(gradients) / WORLD, step)
        got = np.frombuffer(result, NUMPY[dtype]).astype(np.float64)
        worst = max(worst, float(np.abs(got - reference.w).max() / max(1, np.abs(reference.w).max())))
fetched = all_ended(job, fetch(job, handles, settings["steps"] + 1))
job.close()
report(worst=worst, digest=sha.hexdigest(), fetches=fetched == results)
"""
TOLERANCES = {"FLOAT32": 2e-6, "FLOAT64": 1e-13, "FLOAT16": 1e-3}


def expect_trajectory(trainers, tolerance: float) -> None:
    results = [trainer.result() for trainer in trainers]
    assert len({result["digest"] for result in results}) == 1
    assert all(result["fetches"] for result in results)
    assert results[0]["worst"] <= tolerance


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "nesterov", "adam", "adamw"])
def test_weights_go_the_optimizers_way(cluster_of, optimizer):
    trainers = cluster_of(4, *EXACT).start(TRAIN, nodes=[0, 1, 2, 3], argument={"optimizer": optimizer})
    expect_trajectory(trainers, TOLERANCES["FLOAT32"])


# Lion's steps have a sign: float64, so that no rounding changes one.
@pytest.mark.parametrize(("optimizer", "dtype"), [("lion", "FLOAT64"), ("adamw", "FLOAT64"), ("momentum", "FLOAT16")])
def test_other_types_have_weights_too(cluster_of, optimizer, dtype):
    argument = {"optimizer": optimizer, "dtype": dtype}
    trainers = cluster_of(4, *EXACT).start(TRAIN, nodes=[0, 1, 2, 3], argument=argument)
    expect_trajectory(trainers, TOLERANCES[dtype])


@pytest.mark.parametrize("placed", [[0, 0, 1, 1, 2], [0, 1], [0, 0], [0]], ids=str)
def test_nodes_may_have_several_ranks_and_a_job_one_node(cluster_of, placed):
    trainers = cluster_of(3, *EXACT).start(TRAIN, nodes=placed, argument={})
    expect_trajectory(trainers, TOLERANCES["FLOAT32"])


WAYS_BETWEEN_NODES = [
    ("collective.two_hops_bytes=0",),
    ("collective.halving_bytes=0", "collective.two_hops_bytes=0"),
    ("collective.two_hops_bytes=1GiB",),
]


@pytest.mark.parametrize("settings", WAYS_BETWEEN_NODES, ids=str)
def test_every_way_between_nodes_leads_there(cluster_of, settings):
    trainers = cluster_of(4, "plan.planner=first", *settings).start(TRAIN, nodes=[0, 1, 2, 3], argument={"steps": 5})
    expect_trajectory(trainers, TOLERANCES["FLOAT32"])


# --- owners stay where they are ---

# Trains until its plan has changed, and compares with what owners would make of the same sums.
REPLAN = WEIGHTS + """
from trainer import StopSign

job = open_job()
counts = [4000 + 500 * i for i in range(30)]
handles = job.register([TensorSpec(f"layer{i}", DType.FLOAT32, c, backward_order=i, planned=True, state_slots=2)
                        for i, c in enumerate(counts)])
stop = StopSign(job, ARGUMENT)
ones = [np.full(c, 1 + RANK, np.float32) for c in counts]
weights = [np.zeros(c, np.float32) for c in counts]
velocity = np.zeros(len(counts), np.float32)
all_ended(job, load(job, handles, 0, weights))
step = 0
while not stop.is_reached(step):
    step += 1
    tickets = []
    for i, (handle, one) in enumerate(zip(handles, ones)):
        tickets.append(job.submit(handle, step, one, update=Update(
            count=step, learning_rate=2.0**-12, momentum=0.5)))
        time.sleep(0.0003)
    results = all_ended(job, tickets)
    gradient = np.float32(WORLD * (WORLD + 1) // 2)
    velocity = gradient if step == 1 else np.float32(0.5) * velocity + gradient
    weights = [w - np.float32(2.0**-12) * velocity for w in weights]
    for i, result in enumerate(results):
        assert np.array_equal(np.frombuffer(result, np.float32), weights[i]), (step, i)
job.close()
report(steps=step)
"""


def test_a_new_plan_moves_no_state(cluster_of, tmp_path):
    cluster, job = cluster_of(3, *EXACT), "weights-replanned"
    trainers = cluster.start(REPLAN, nodes=[0, 1, 2], argument=str(tmp_path / "stop"), job=job)
    stop_after_a_change(trainers, job, tmp_path / "stop")
    steps = [trainer.result()["steps"] for trainer in trainers]
    expect_changes(cluster, [0, 1, 2], job, steps[0])


# --- halves ---

HALVES = WEIGHTS + """
job = open_job()
counts = [70_000, 5, 300_001]


def model(name, codec=""):
    return job.register([TensorSpec(f"{name}{i}", DType.FLOAT32, c, backward_order=i, planned=True, state_slots=2,
                                    codec=codec) for i, c in enumerate(counts)])


def gradients(step):
    return [np.random.default_rng([step, RANK, i]).standard_normal(c).astype(np.float32) for i, c in enumerate(counts)]


whole, halves = model("whole"), model("halves")
first = [np.random.default_rng(i).standard_normal(c).astype(np.float32) for i, c in enumerate(counts)]
loaded = [all_ended(job, load(job, handles, 0, first)) for handles in (whole, halves)]
assert loaded[0] == loaded[1] == [bytes(f) for f in first]
empty = True
for step in range(1, 7):
    tickets = send(job, halves, step, gradients(step), step, UpdateAction.PUSH, momentum=0.9)
    expected = all_ended(job, send(job, whole, step, gradients(step), step, momentum=0.9))
    empty = empty and not any(all_ended(job, tickets))
got = all_ended(job, fetch(job, halves, 7))
moments = [all_ended(job, fetch(job, handles, 8, StateSlot.FIRST_MOMENT)) for handles in (halves, whole)]
job.close()
report(same=got == expected, moments=moments[0] == moments[1], empty=empty, digest=digest(*got))
"""


@pytest.mark.parametrize("placed", [[0, 1, 2, 3], [0, 0, 1], [0, 0]], ids=str)
def test_what_is_pushed_is_in_the_weights_that_are_fetched_later(cluster_of, placed):
    results = [trainer.result() for trainer in cluster_of(4, *EXACT).start(HALVES, nodes=placed)]
    assert all(result["same"] and result["moments"] and result["empty"] for result in results), results
    assert len({result["digest"] for result in results}) == 1


# --- estimates ---

# Before each update its estimate, of the same gradients.
ESTIMATES = WEIGHTS + """
slots, fields = OPTIMIZERS[ARGUMENT["optimizer"]]
dtype = DType[ARGUMENT["dtype"]]
job = open_job()
counts = [70_000, 5, 300_001]
handles = job.register([TensorSpec(f"layer{i}", dtype, c, backward_order=i, planned=True, state_slots=slots,
                                   codec=ARGUMENT["codec"]) for i, c in enumerate(counts)])


def numbers(*seed):
    return [np.random.default_rng([*seed, i]).standard_normal(c).astype(NUMPY[dtype]) for i, c in enumerate(counts)]


all_ended(job, load(job, handles, 0, numbers(99)))
seen = {"same": True, "kept": True, "moved": True}
step, sha = 0, hashlib.sha256()
for count in range(1, 6):
    gradients = numbers(count, RANK)
    before = [all_ended(job, fetch(job, handles, step + 1 + slot, StateSlot(slot))) for slot in range(slots)]
    step += slots + 1
    estimated = all_ended(job, send(job, handles, step, gradients, count, UpdateAction.ESTIMATE, **fields))
    after = [all_ended(job, fetch(job, handles, step + 1 + slot, StateSlot(slot))) for slot in range(slots)]
    step += slots + 1
    applied = all_ended(job, send(job, handles, step, gradients, count, **fields))
    seen["kept"] = seen["kept"] and before == after
    seen["same"] = seen["same"] and estimated == applied
    seen["moved"] = seen["moved"] and applied[2] != before[0][2]
    sha.update(b"".join(estimated))
job.close()
report(digest=sha.hexdigest(), **seen)
"""
ESTIMATED = [("momentum", "FLOAT32", ""), ("adamw", "FLOAT32", ""), ("lion", "FLOAT64", ""), ("adam", "FLOAT16", ""),
             ("momentum", "FLOAT32", "2bit:threshold=0.5")]  # fmt: skip


@pytest.mark.parametrize(("optimizer", "dtype", "codec"), ESTIMATED)
def test_an_estimate_is_what_an_update_would_give_and_changes_nothing(cluster_of, optimizer, dtype, codec):
    # One plan: what is added in another order may have other bits.
    cluster = cluster_of(3, "plan.planner=first")
    argument = {"optimizer": optimizer, "dtype": dtype, "codec": codec}
    results = [trainer.result() for trainer in cluster.start(ESTIMATES, nodes=[0, 1, 1, 2], argument=argument)]
    assert all(result["same"] and result["kept"] and result["moved"] for result in results), results
    assert len({result["digest"] for result in results}) == 1


# --- bits of state ---

STATE_BITS = WEIGHTS + """
job = open_job()
count = 50_001
dtype = DType[ARGUMENT]
handles = job.register([TensorSpec("weights", dtype, count, planned=True, state_slots=3)])
random = np.random.default_rng(1)
same = True
step = 0
for slot in StateSlot:
    state = random.standard_normal(count).astype(np.float32)
    halves = state.view(np.uint16).reshape(-1, 2)
    for bits, half in ((StateBits.HIGH, 1), (StateBits.LOW, 0)):
        all_ended(job, load(job, handles, step, [np.ascontiguousarray(halves[:, half]).view(np.uint8)], slot, bits))
        step += 1
    for bits, half in ((StateBits.HIGH, 1), (StateBits.LOW, 0)):
        got = all_ended(job, fetch(job, handles, step, slot, bits))[0]
        same = same and np.array_equal(np.frombuffer(got, np.uint16), halves[:, half])
        step += 1
    rounded = np.frombuffer(all_ended(job, fetch(job, handles, step, slot))[0], np.uint16)
    step += 1
    if dtype == DType.FLOAT16:
        same = same and np.array_equal(rounded, state.astype(np.float16).view(np.uint16))
job.close()
report(same=bool(same))
"""


@pytest.mark.parametrize("dtype", ["FLOAT16", "BFLOAT16"])
def test_state_of_16_bit_tensors_moves_without_a_loss(cluster_of, dtype):
    for trainer in cluster_of(4, *EXACT).start(STATE_BITS, nodes=[0, 1, 2, 2], argument=dtype):
        assert trainer.result()["same"]
