# SPDX-License-Identifier: Apache-2.0
"""Jobs of one node take turns: what one user has queued does not hold up another one's job."""

import pytest
from real_cluster import needs_daemons, until
from second_user import GROUP_SETTING, needs_nobody, start_neighbour, way_opened

pytestmark = [needs_daemons, needs_nobody, pytest.mark.sanitized]

BUSY_JOBS = 8
# Has thousands of barriers queued, for ever.
QUEUE = """
from collections import deque
job = open_job(f"busy {ARGUMENT}")
tensor = job.register([braid.TensorSpec("stream", dynamic=True)])[0]
tickets = deque()
for step in range(100_000_000):
    tickets.append(job.submit(tensor, step, collective=braid.Collective.BARRIER))
    if len(tickets) == 4000:
        if step < 4000:
            report(queued=True)
        for _ in range(100):
            ticket = tickets.popleft()
            job.wait(ticket)
            job.release(ticket)
"""
SUMS = 100
# Twice: the first time, a thread of the daemon's reserves memory for the results, which takes as long as the
# machine lets it.
SUM = """
def submit(first):
    steps = range(first, first + ARGUMENT["sums"])
    return [job.submit(tensor, step, np.ones(100, np.float32)) for step in steps]
def check(tickets):
    for ticket in tickets:
        assert np.frombuffer(ended(job, ticket), np.float32)[0] == WORLD
job = open_job()
tensor = dynamic(job)
check(submit(0))
say("RUNNING")
while not os.path.exists(ARGUMENT["go"]):
    time.sleep(0.01)
tickets = submit(ARGUMENT["sums"])
say("SUBMITTED")
check(tickets)
report(good=True)
"""
# Beside its share: a round's submissions, and what is with the engines when the sums come.
ROUND = 256 + 64 * BUSY_JOBS


def test_sums_do_not_wait_behind_another_users_queue(cluster_of, tmp_path):
    cluster = cluster_of(1, GROUP_SETTING)
    node = cluster.nodes[0]

    def ended() -> tuple[int, int]:
        """Operations of the busy jobs, and of the other one's second time, that have ended: at one moment, by the
        daemon's word."""
        done = {job["name"]: job["operations_done"] for job in node.status()["jobs"]}
        busy = sum(number for name, number in done.items() if name.startswith("busy"))
        return busy, done.get("other", 2 * SUMS) - SUMS

    with way_opened(node.socket):
        busy = [start_neighbour(cluster, QUEUE, i) for i in range(BUSY_JOBS)]
        argument = {"go": str(tmp_path / "go"), "sums": SUMS}
        (other,) = cluster.start(SUM, argument=argument, nodes=[0], job="other")
        other.wait_for("RUNNING")
        for trainer in busy:
            trainer.wait_for("queued")
        with node.stopped():  # so that all queues are there when it goes on
            (tmp_path / "go").touch()
            other.wait_for("SUBMITTED")
        seen = [ended()]
        while seen[-1][1] < SUMS:
            seen.append(ended())
        assert other.result()["good"]
        until(lambda: ended()[0] > seen[-1][0], "the busy jobs go on")
        for trainer in busy:
            trainer.kill()
    # A sum costs a little more than a barrier, by its bytes.
    for before, after in zip(seen, seen[1:], strict=False):
        if after[1] < SUMS:
            assert after[0] - before[0] <= 2 * BUSY_JOBS * (after[1] - before[1]) + ROUND, seen
