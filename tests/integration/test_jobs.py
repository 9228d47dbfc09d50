# SPDX-License-Identifier: Apache-2.0
"""Jobs side by side on the same daemons: isolated from each other, whatever one of them does."""

import pytest
from real_cluster import SUM_FOREVER, needs_daemons, wait_until_running

pytestmark = [needs_daemons, pytest.mark.sanitized]

MANY_SUMS = """
with open_job() as job:
    tensor, wrong = dynamic(job), 0
    for step in range(150):
        mine = np.full(20_000, ARGUMENT * (RANK + 1) + step, np.float32)
        got = np.frombuffer(ended(job, job.submit(tensor, step, mine)), np.float32)
        wrong += int((got != ARGUMENT * WORLD * (WORLD + 1) / 2 + WORLD * step).any())
        if step == 0:
            say("RUNNING")
    report(wrong=wrong)
"""
TWO_JOBS_IN_ONE_PROCESS = """
a, b = open_job("first"), open_job("second", rank=WORLD - 1 - RANK)
ta, tb = dynamic(a), dynamic(b)
tickets = []
for step in range(20):
    tickets.append((a.submit(ta, step, np.full(1000, a.rank + 1, np.int64)),
                    b.submit(tb, step, np.full(1000, 10 * (b.rank + 1), np.int64))))
sums = set()
for x, y in tickets:
    sums.add((int(np.frombuffer(ended(a, x), np.int64)[0]),
              int(np.frombuffer(ended(b, y), np.int64)[-1])))
a.close()
got = np.frombuffer(ended(b, b.submit(tb, 20, np.full(7, 5, np.int64))), np.int64)
b.close()
with open_job("first") as again:
    more = np.frombuffer(ended(again, again.submit(dynamic(again), 0, np.ones(3, np.int64))),
                         np.int64)
report(sums=sorted(sums), after=int(got[0]), again=int(more[0]))
"""
# As new_group and DeviceMesh do it: rows and columns of a mesh are jobs of their own.
SUBGROUPS = """
whole = open_job()
row, column = RANK // 2, RANK % 2
rows = open_job(f"row{row}", rank=column, world_size=2)
columns = open_job(f"column{column}", rank=row, world_size=2)
sums = []
for job in (whole, rows, columns):
    got = ended(job, job.submit(dynamic(job), 0, np.full(1001, 10 ** RANK, np.int32)))
    sums.append(sorted(set(np.frombuffer(got, np.int32).tolist())))
for job in (columns, rows, whole):
    job.close()
report(sums=sums)
"""
THREADS = """
import threading
with open_job() as job:
    tensors = job.register([TensorSpec(f"t{i}", DType.FLOAT32, 5000) for i in range(8)])
    wrong = []
    def work(i):
        for step in range(40):
            mine = np.full(5000, (RANK + 1) * (i + 1), np.float32)
            got = np.frombuffer(ended(job, job.submit(tensors[i], step, mine)), np.float32)
            if (got != (i + 1) * WORLD * (WORLD + 1) / 2).any():
                wrong.append((i, step))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    report(wrong=wrong)
"""


def test_jobs_at_the_same_time_do_not_mix(cluster_of):
    cluster = cluster_of(3)
    started = [
        trainer
        for factor, nodes in [(1, [0, 1, 2]), (100, [2, 1]), (10_000, [1, 1, 0])]
        for trainer in cluster.start(MANY_SUMS, argument=factor, nodes=nodes)
    ]
    for trainer in started:
        assert trainer.result()["wrong"] == 0


def test_one_job_fails_while_another_goes_on(cluster_of):
    cluster = cluster_of(3)
    good = cluster.start(MANY_SUMS, argument=3)
    bad = cluster.start(SUM_FOREVER, job="doomed")
    wait_until_running(good + bad)
    bad[1].kill()
    for trainer in (bad[0], bad[2]):
        assert "rank 1" in trainer.error()["text"]
    for trainer in good:
        assert trainer.result()["wrong"] == 0


def test_two_jobs_in_one_process_and_a_second_open(cluster_of):
    for trainer in cluster_of(3).start(TWO_JOBS_IN_ONE_PROCESS):
        result = trainer.result()
        assert result["sums"] == [[6, 60]]
        assert (result["after"], result["again"]) == (15, 3)


def test_subgroups(cluster_of):
    trainers = cluster_of(3).start(SUBGROUPS, nodes=[0, 1, 1, 2])
    for rank, trainer in enumerate(trainers):
        row, column = rank // 2, rank % 2
        assert trainer.result()["sums"] == [
            [1111],
            [10 ** (2 * row) + 10 ** (2 * row + 1)],
            [10**column + 10 ** (column + 2)],
        ]


def test_several_threads_of_a_trainer_submit(cluster_of):
    for trainer in cluster_of(3).start(THREADS, nodes=[0, 1]):
        assert trainer.result()["wrong"] == []


def test_jobs_leave_nothing_in_the_daemons(cluster_of):
    cluster = cluster_of(3)
    cluster.expect_healthy()  # links to all neighbours are open from here on: they stay
    before = cluster.settled_footprints()
    for _ in range(3):
        for trainer in cluster.start(TWO_JOBS_IN_ONE_PROCESS):
            trainer.result()
    cluster.expect_footprints(before)
