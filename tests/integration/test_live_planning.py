# SPDX-License-Identifier: Apache-2.0
"""Planned gradients on real daemons: merged as the plan says, with exact sums while plans change."""

import itertools
import json
import signal
import time

import pytest
from braid_build import IS_SANITIZED
from planned_training import ANY_GAIN, expect_changes, stop_after_a_change
from real_cluster import needs_daemons, until, wait_until_running

pytestmark = needs_daemons

PLACES = pytest.mark.parametrize("placed", [[0, 1, 2], [0, 0, 1, 1]], ids=str)
EXACT = ("plan.planner=exact", ANY_GAIN)
# A step takes ten times as long there, and what can go wrong with it is the same.
STEPS = 40 if IS_SANITIZED else 100
_job_numbers = itertools.count(1)

# ARGUMENT: what a case changes; at least so many steps, and until the stop sign if there is one.
# Each step's values differ, and all sums are exact.
TRAIN = """
import random
settings = {"tensors": 60, "sleep": {}, "reduction": "SUM", "unplanned": False, "models": 1,
            "stop": None, **ARGUMENT}
reduction = Reduction[settings["reduction"]]
job = open_job()

class Model:
    def __init__(self, number, tensors):
        self.counts = [1 + (i * 7919 + number * 31) % 3000 for i in range(tensors)]
        self.counts[tensors // 2] = 400_000
        self.dtypes = [np.float64 if i % 11 == 5 else np.float32 for i in range(tensors)]
        kinds = {np.float32: DType.FLOAT32, np.float64: DType.FLOAT64}
        self.handles = job.register(
            [TensorSpec(f"model{number}.layer{i}", kinds[d], c, backward_order=i, planned=True)
             for i, (c, d) in enumerate(zip(self.counts, self.dtypes))])
        self.inputs = [np.empty(c, d) for c, d in zip(self.counts, self.dtypes)]
        self.sha = hashlib.sha256()
        self.step = 0

    def submit(self):
        tickets = []
        for i, (handle, mine) in enumerate(zip(self.handles, self.inputs)):
            mine[:] = (np.arange(mine.size) + 3 * i + self.step) % 64 + 4 * RANK
            tickets.append(job.submit(handle, self.step, mine, reduction=reduction))
        return tickets

    def expected(self, i):
        base = (np.arange(self.counts[i]) + 3 * i + self.step) % 64
        if reduction == Reduction.SUM:
            return base * WORLD + 4 * (WORLD * (WORLD - 1) // 2)
        if reduction == Reduction.AVERAGE:
            return base + 2 * (WORLD - 1)
        if reduction == Reduction.MIN:
            return base
        if reduction == Reduction.MAX:
            return base + 4 * (WORLD - 1)
        product = np.ones(self.counts[i])
        for rank in range(WORLD):
            product *= base + 4 * rank
        return product

    def finish(self, tickets):
        wrong = 0
        for i, ticket in enumerate(tickets):
            got = ended(job, ticket)
            self.sha.update(got)
            wrong += int(not np.array_equal(np.frombuffer(got, self.dtypes[i]), self.expected(i)))
        self.step += 1
        return wrong

models = [Model(number, settings["tensors"] + number) for number in range(settings["models"])]
stream = dynamic(job)
sign = StopSign(job, settings["stop"]) if settings["stop"] else None
wrong = step = 0
while step < settings["steps"] or (sign is not None and not sign.is_reached(step)):
    if str(step) in settings["sleep"] and RANK == 1:
        time.sleep(settings["sleep"][str(step)])
    # The second model's steps are half as many, and lie between the first one's.
    active = [m for number, m in enumerate(models) if step % (number + 1) == 0]
    tickets = [m.submit() for m in active]
    if settings["unplanned"]:
        mine = np.full(100, RANK + step, np.int64)
        got = np.frombuffer(ended(job, job.submit(stream, step, mine)), np.int64)
        wrong += int((got != WORLD * step + WORLD * (WORLD - 1) // 2).any())
    for model, own in zip(active, tickets):
        wrong += model.finish(own)
    if step == 3:
        say("RUNNING")
    step += 1
job.close()
report(wrong=wrong, steps=step, digest=[m.sha.hexdigest() for m in models])
"""


def expect_exact(trainers) -> int:
    """How many steps it took."""
    results = [trainer.result() for trainer in trainers]
    assert [result["wrong"] for result in results] == [0] * len(results)
    assert len({json.dumps([result["steps"], result["digest"]]) for result in results}) == 1
    return results[0]["steps"]


@pytest.fixture
def train(cluster_of, tmp_path):
    """train(placed, meanwhile, **argument): a job that is exact and whose plan changes."""

    def run(placed: list[int], meanwhile=lambda cluster: None, **argument) -> None:
        cluster = cluster_of(3, *EXACT)
        job, sign = f"planned-{next(_job_numbers)}", tmp_path / "stop"
        argument = {"steps": STEPS, "stop": str(sign), **argument}
        trainers = cluster.start(TRAIN, nodes=placed, argument=argument, job=job)
        wait_until_running(trainers)
        meanwhile(cluster)
        stop_after_a_change(trainers, job, sign)
        expect_changes(cluster, placed, job, expect_exact(trainers))

    return run


@PLACES
def test_sums_are_exact_while_plans_change(train, placed):
    train(placed)


@pytest.mark.parametrize("reduction", ["MIN", "MAX", "PRODUCT", "AVERAGE"])
def test_every_reduction_can_be_planned(cluster_of, reduction):
    cluster = cluster_of(3, *EXACT)
    placed = [0, 1] if reduction == "AVERAGE" else [0, 1, 2]
    argument = {"reduction": reduction, "steps": STEPS // 2, "tensors": 20}
    expect_exact(cluster.start(TRAIN, nodes=placed, argument=argument))


def test_two_models_in_one_job_are_planned_apart(train):
    train([0, 1, 2], models=2, tensors=25)


def test_what_is_not_planned_runs_between_what_is(train):
    train([0, 0, 1, 1], unplanned=True, tensors=30)


def test_a_trainer_that_sleeps_loses_nothing(train):
    train([0, 1, 2], sleep={"8": 1.0, "16": 0.5, "24": 0.5}, tensors=30)


@pytest.mark.parametrize("stopped", [0, 1], ids=["the coordinator", "another"])
def test_a_daemon_that_stands_still_loses_nothing(train, stopped):
    def stop_twice(cluster) -> None:
        node = cluster.nodes[stopped]
        for _ in range(2):
            node.signal(signal.SIGSTOP)
            time.sleep(1)  # many steps long
            node.signal(signal.SIGCONT)
            time.sleep(0.3)

    train([0, 1, 2], stop_twice, tensors=30)


# --- what goes wrong ---

HALF_A_GROUP = """
job = open_job()
tensors = job.register([TensorSpec(f"layer{i}", DType.FLOAT32, 10, planned=True) for i in range(8)])
mine = np.ones(10, np.float32)
for step in range(2):
    for ticket in [job.submit(t, step, mine) for t in tensors]:
        ended(job, ticket)
tickets = [job.submit(t, 2, mine) for t in (tensors[:4] if RANK == 1 else tensors)]
say("RUNNING")
if RANK == 1:
    time.sleep(60)
ended(job, tickets[0])
"""


def test_a_rank_that_dies_half_way_through_a_group_is_named(cluster_of):
    cluster = cluster_of(3, *EXACT)
    trainers = cluster.start(HALF_A_GROUP)
    wait_until_running(trainers)
    trainers[1].kill()
    for trainer in (trainers[0], trainers[2]):
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_JOB_FAILED", error
        assert f"lost rank 1 on node '{cluster.nodes[1].name}'" in error["text"], error
    cluster.expect_healthy()


ONE_LEFT_OUT = """
job = open_job()
tensors = job.register([TensorSpec(f"layer{i}", DType.FLOAT32, 10, planned=True) for i in range(8)])
mine = np.ones(10, np.float32)
for step in range(30):
    # The others' first steps may take their time: only what is awaited in vain has a deadline.
    deadline = 4 if step == ARGUMENT["step"] else None
    tickets = [job.submit(t, step, mine, timeout=deadline) for i, t in enumerate(tensors)
               if not (RANK == 1 and step == ARGUMENT["step"] and i == ARGUMENT["tensor"])]
    for ticket in tickets:
        ended(job, ticket)
time.sleep(30)
"""


@PLACES
@pytest.mark.parametrize("tensor", [0, 5])
def test_a_planned_tensor_that_is_left_out_is_named_with_its_rank(cluster_of, placed, tensor):
    cluster = cluster_of(3, "plan.planner=first")
    argument = {"step": 3, "tensor": tensor}
    for trainer in cluster.start(ONE_LEFT_OUT, nodes=placed, argument=argument):
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_DEADLINE_EXCEEDED", error
        assert "'layer0' and 7 more that are merged with it step 3" in error["text"], error
        assert "not submitted by rank 1 " in error["text"], error
        assert f"not 'layer{tensor}'" in error["text"], error
    cluster.expect_healthy(placed)


DIFFERENT_SETS = """
job = open_job()
counts = {"count": [10, 20, 31 if RANK == 1 else 30], "name": [10, 20, 30]}[ARGUMENT]
names = ["a", "b", "other" if RANK == 1 and ARGUMENT == "name" else "c"]
tensors = job.register([TensorSpec(n, DType.FLOAT32, c, planned=True)
                        for n, c in zip(names, counts)])
tickets = [job.submit(t, 0, np.ones(c, np.float32), timeout=5) for t, c in zip(tensors, counts)]
for ticket in tickets:
    ended(job, ticket)
"""


@pytest.mark.parametrize("differing", ["count", "name"])
def test_nodes_that_register_different_tensors_are_told_what_differs(cluster_of, differing):
    cluster = cluster_of(3, *EXACT)
    for trainer in cluster.start(DIFFERENT_SETS, argument=differing):
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_MISMATCH", error
        assert "ranks disagree about 'a' step 0" in error["text"], error
        assert "rank 1" in error["text"], error
    cluster.expect_healthy()


def test_ranks_of_one_node_that_register_different_tensors_are_told(cluster_of):
    cluster = cluster_of(3, *EXACT)
    # Which rank comes second is a matter of chance; the other one waits until its deadline.
    errors = [t.error() for t in cluster.start(DIFFERENT_SETS, nodes=[0, 0], argument="count")]
    refused = [error for error in errors if error["error"] == "BRAID_ERROR_MISMATCH"]
    assert refused, errors
    assert "planned tensors that are not those of another rank on this node" in refused[0]["text"]
    cluster.expect_healthy([0, 0])


AS_SOMETHING_ELSE = """
job = open_job()
planned = job.register([TensorSpec("a", DType.FLOAT32, 10, planned=True)])[0]
ended(job, job.submit(planned, 0, np.ones(10, np.float32), collective=Collective.BROADCAST, timeout=5))
"""


def test_a_planned_tensor_is_reduced_only(cluster_of):
    cluster = cluster_of(3, *EXACT)
    for trainer in cluster.start(AS_SOMETHING_ELSE):
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_INVALID_ARGUMENT", error
        assert "is planned; each step submits it by itself, as an all-reduce" in error["text"]
    cluster.expect_healthy()
