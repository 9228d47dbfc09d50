# SPDX-License-Identifier: Apache-2.0
"""Weights that the daemons update: with codecs, the bytes that are sent, and what goes wrong."""

import pytest
from real_cluster import PEERS_WAIT, needs_daemons
from test_operations import metrics
from test_updates import EXACT, WEIGHTS

pytestmark = needs_daemons

# --- codecs ---

# Gradients that stop: then what codecs have kept goes out until it is too small for the threshold.
CODED = WEIGHTS + """
job = open_job()
count = 100_003
handles = job.register([TensorSpec("weights", DType.FLOAT32, count, planned=True, state_slots=1,
                                   codec=ARGUMENT["codec"])])
first = np.full(count, 1 / 3, np.float32)
all_ended(job, load(job, handles, 0, [first]))
pushed = np.zeros(count)
sha = hashlib.sha256()
for step in range(1, 121):
    # Multiples of 2^-10, of which every sum is exact.
    own = [np.round(np.random.default_rng([step, rank]).uniform(-2, 2, count) * 1024).astype(np.float32) / 1024
           if step <= 20 else np.zeros(count, np.float32) for rank in range(WORLD)]
    pushed += sum(own)
    update = Update(count=step, learning_rate=1, flags=ARGUMENT["flags"])
    result = ended(job, job.submit(handles[0], step, own[RANK], update=update))
    sha.update(result)
exact = ended(job, fetch(job, handles, 121)[0])
weights = np.frombuffer(exact, np.float32).astype(np.float64)
job.close()
rounded = np.frombuffer(result, np.float32)
report(left=float(np.abs(weights - first + pushed).max()), digest=sha.hexdigest(), pulls_exactly=result == exact,
       pulls=float(np.abs(rounded - weights).max() / np.abs(weights).max()))
"""


@pytest.mark.parametrize("codec", ["2bit:threshold=0.5", "2bit:threshold=0.5,full-every=5"])
def test_what_a_codec_keeps_of_a_push_is_all_that_weights_lack(cluster_of, codec):
    # Each of 4 nodes keeps less than the threshold when no more comes out.
    argument = {"codec": codec, "flags": 0}
    results = [t.result() for t in cluster_of(4, *EXACT).start(CODED, nodes=[0, 1, 2, 3], argument=argument)]
    assert len({result["digest"] for result in results}) == 1
    assert results[0]["left"] < 4 * 0.5
    assert results[0]["pulls_exactly"], "weights travel as they are, whatever gradients do"


@pytest.mark.parametrize("codec", ["", "2bit:threshold=0.5"])
def test_weights_may_come_rounded_and_stay_exact_at_their_owners(cluster_of, codec):
    argument = {"codec": codec, "flags": 4}  # PULL_BFLOAT16
    results = [t.result() for t in cluster_of(4, *EXACT).start(CODED, nodes=[0, 1, 2, 3], argument=argument)]
    assert len({result["digest"] for result in results}) == 1
    assert results[0]["left"] < (4 * 0.5 if codec else 1e-3)
    assert 0 < results[0]["pulls"] <= 2**-8


# --- bytes on the wire ---

STEPS, ELEMENTS = 4, 3_000_000
BYTES = WEIGHTS + f"""
job = open_job()
handles = job.register([TensorSpec("weights", DType.FLOAT32, {ELEMENTS}, planned=True, state_slots=1,
                                   codec=ARGUMENT["codec"])])
all_ended(job, load(job, handles, 0, [np.zeros({ELEMENTS}, np.float32)]))
say("LOADED")
while not os.path.exists(ARGUMENT["go"]):
    time.sleep(0.01)
mine = np.random.default_rng(RANK).standard_normal({ELEMENTS}).astype(np.float32)
for step in range(1, {STEPS} + 1):
    pulls = step % ARGUMENT["pull_every"] == 0
    action = UpdateAction.APPLY if pulls else UpdateAction.PUSH
    if ARGUMENT["estimates"] and step % 2:
        action = UpdateAction.ESTIMATE
    update = Update(action=action, count=step, learning_rate=0.1,
                    flags=ARGUMENT["flags"] if pulls else 0)
    ended(job, job.submit(handles[0], step, mine, reduction=Reduction.AVERAGE, update=update))
job.close()
report()
"""
# Bits that leave a node for each element of a part, and of a weight, in the mean of the steps.
WAYS = {
    "sharded": ({}, 32, 32),
    "acco": ({"estimates": True}, 32, 32),
    "acco, weights as bfloat16": ({"estimates": True, "flags": 4}, 32, 16),
    "ssd, pulls every second step": ({"pull_every": 2}, 32, 16),
    "ssd, pulls every fourth step": ({"pull_every": 4}, 32, 8),
    "cd, without corrections": ({"codec": "2bit:threshold=4"}, 2, 32),
    "cd, a correction every second step": ({"codec": "2bit:threshold=4,full-every=2"}, (2 + 32) / 2, 32),
    "cd, weights as bfloat16": ({"codec": "2bit:threshold=4", "flags": 4}, 2, 16),
}


@pytest.mark.parametrize("way", WAYS)
def test_as_many_bytes_are_sent_as_the_formula_says(cluster_of, tmp_path, way):
    # With one flow no chunk is sent over another one, too, because it is overdue.
    cluster = cluster_of(4, "plan.planner=first", "transport.flows_per_link=1", PEERS_WAIT)
    argument, part, weight = WAYS[way]
    argument = {"codec": "", "pull_every": 1, "flags": 0, "estimates": False, "go": str(tmp_path / "go"), **argument}

    def sent() -> float:
        return sum(metrics(node)['braid_wire_bytes_total{direction="sent"}'] for node in cluster.nodes)

    trainers = cluster.start(BYTES, nodes=[0, 1, 2, 3], argument=argument)
    for trainer in trainers:
        trainer.wait_for("LOADED")
    before = sent()
    (tmp_path / "go").touch()
    for trainer in trainers:
        trainer.result()
    assert sent() - before == pytest.approx(STEPS * ELEMENTS * 3 * (part + weight) / 8, rel=0.01)


# --- what goes wrong ---

WRONG = WEIGHTS + """
spec = {"slots": [2, 2, 2], "dtype": "FLOAT32", "rates": [0.1, 0.1, 0.1], "actions": [0, 0, 0], "load": True,
        "reduction": "SUM", "momentum": 0.0, **ARGUMENT}
job = open_job()
dtype = DType[spec["dtype"]]
values = np.ones(100, np.uint8).repeat(dtype.itemsize)
handle = job.register([TensorSpec("weights", dtype, 100, planned=True, state_slots=spec["slots"][RANK])])[0]
if spec["load"]:
    ended(job, load(job, [handle], 0, [values])[0])
update = Update(action=spec["actions"][RANK], count=1, learning_rate=spec["rates"][RANK], momentum=spec["momentum"])
ended(job, job.submit(handle, 1, values, reduction=Reduction[spec["reduction"]],
                      update=None if spec.get("none") else update))
job.close()
report()
"""


@pytest.mark.parametrize(
    ("argument", "texts"),
    [
        ({"rates": [0.1, 0.1, 0.2]}, ["ranks disagree about 'weights' step 1", "lr 0.1", "lr 0.2"]),
        ({"rates": [0.1, 0.2, 0.1]}, ["ranks disagree about 'weights' step 1", "lr 0.1", "lr 0.2"]),
        ({"actions": [0, 0, 1]}, ["ranks disagree about 'weights' step 1", "not pulled"]),
        ({"actions": [4, 4, 0]}, ["ranks disagree about 'weights' step 1", "estimate of sgd"]),
        ({"load": False, "actions": [4, 4, 4]}, ["estimate of sgd", "whose weights were never loaded"]),
        ({"load": False}, ["'weights' step 1, whose weights were never loaded; the first update of a tensor loads"]),
        ({"slots": [1, 1, 1], "momentum": 0.9}, ["needs 2 state slots; the tensor was registered with 1"]),
        ({"slots": [4, 4, 4]}, ["state_slots of tensor 'weights' is 4; 0 to 3 are possible"]),
        ({"dtype": "INT32"}, ["'weights' has state slots and is of int32; optimizers are for floats"]),
        ({"reduction": "MAX"}, ["'weights' has state_slots; its operations are all-reduces with BRAID_SUM or"]),
        ({"none": True}, ["update of 'weights' is NULL; the tensor was registered with state_slots"]),
        ({"momentum": 1.5}, ["momentum", "1.5"]),
        ({"rates": [float("nan")] * 3}, ["learning_rate"]),
        ({"actions": [9, 9, 9]}, ["action", "9"]),
    ],
    ids=lambda value: "" if isinstance(value, list) else str(value),
)
def test_what_cannot_be_is_named(cluster_of, argument, texts):
    trainers = cluster_of(2).start(WRONG, nodes=[0, 0, 1], argument=argument)
    said = [trainer.error()["text"] for trainer in trainers]
    assert any(all(text in each for text in texts) for each in said), said
