# SPDX-License-Identifier: Apache-2.0
"""What braidd says of its jobs by itself: lines in the log, and the service manager's status."""

import re

from braid_build import PATIENCE_S
from real_cluster import SHORT_JOB, SUM_FOREVER, needs_daemons, until, wait_until_running
from single_daemon import DatagramSocket, SingleDaemon

pytestmark = needs_daemons

# Two planned tensors a step, and so many steps.
STEPS = """
with open_job() as job:
    tensors = job.register([TensorSpec(f"layer{i}", DType.FLOAT32, 1000, planned=True) for i in range(2)])
    for step in range(ARGUMENT):
        tickets = [job.submit(tensor, step, np.ones(1000, np.float32)) for tensor in tensors]
        for ticket in tickets:
            ended(job, ticket)
        time.sleep(0.005)
report(good=True)
"""
PROGRESS = re.compile(
    r"job '([^']+)' \((\d+) ranks? on (\d+) nodes?\): ([\d,]+) (steps?|operations?), ([\d,]+) of them in the last (.*)"
)


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_jobs_without_steps_tell_of_operations(cluster_of):
    cluster = cluster_of(2, "debug.progress_seconds=1")
    job = "told-of"
    trainers = cluster.start(SUM_FOREVER, job=job)
    wait_until_running(trainers)
    first, second = cluster.nodes
    until(lambda: len(PROGRESS.findall(first.log())) >= 3, "three lines of progress")
    lines = [line for line in PROGRESS.findall(first.log()) if line[0] == job]
    for _, ranks, nodes, _, what, since, rest in lines:
        assert (ranks, nodes, what) == ("2", "2", "operations")
        assert number(since) > 0
        assert re.search(r"; all-reduces run at [\d.e+-]+ Gbit/s bus bandwidth$", rest)
    totals = [number(line[3]) for line in lines]
    assert totals == sorted(totals)
    for (_, _, _, total, _, since, _), before in zip(lines[1:], totals, strict=False):
        assert number(total) - number(since) == before, "since the line before"
    assert not PROGRESS.search(second.log()), "one node speaks for all"
    for trainer in trainers:
        trainer.kill()
    until(lambda: f"job '{job}' (2 ranks on 2 nodes) has failed after" in first.log(), "the summary")
    until(lambda: not second.status()["jobs"], "the other node knows")
    assert "has failed after" not in second.log()


def test_jobs_with_steps_tell_of_them(cluster_of):
    cluster = cluster_of(2, "debug.progress_seconds=1")
    for trainer in cluster.start(STEPS, argument=300, job="steps"):
        assert trainer.result()["good"]
    log = cluster.nodes[0].log
    until(lambda: "job 'steps' (2 ranks on 2 nodes) is over after" in log(), "the summary")
    over = re.search(
        r"job 'steps' \(2 ranks on 2 nodes\) is over after [\dhms ]+: 300 steps; \S+ ms a step, \S+ ms of it "
        r"exposed \(\d+ %\); [\d,]+ operations, [\d.]+ [KM]iB; all-reduces run at", log()
    )  # fmt: skip
    assert over, log()[-2000:]
    for line in PROGRESS.findall(log()):
        if line[0] == "steps":
            assert line[4] == "steps"
            assert re.search(r"; \S+ ms a step, \S+ ms of it exposed \(\d+ %\)", line[6])


def test_zero_seconds_are_silence(cluster_of):
    cluster = cluster_of(2, "debug.progress_seconds=0")
    for trainer in cluster.start(SHORT_JOB, job="silent"):
        assert trainer.result()["good"]
    until(lambda: not cluster.nodes[0].status()["jobs"], "the job is over")
    assert "is over after" not in cluster.nodes[0].log()


def statuses(manager: DatagramSocket) -> list[str]:
    return re.findall(r"^STATUS=(.*)$", b"\n".join(manager.received).decode(), re.M)


def test_the_service_manager_is_told(tmp_path):
    with DatagramSocket(tmp_path / "notify") as manager:
        with SingleDaemon(environment={"NOTIFY_SOCKET": manager.path}) as daemon:
            until(lambda: manager.received, "the daemon is ready")
            assert manager.received[0] == b"READY=1\nSTATUS=no jobs, 0 flows open"
            # Both wait for each other, so both kinds are there.
            training = daemon.start(SUM_FOREVER, job="train")
            wait_until_running(training)
            daemon.start("open_job()", world=1, job="forms")[0].kill()
            half = daemon.start(SUM_FOREVER.replace("open_job()", "open_job(world_size=2)"), job="forms")
            until(lambda: "2 jobs (1 train, 1 form), 0 flows open" in statuses(manager), "both are told")
            half[0].kill()
            until(lambda: statuses(manager)[-1] == "1 job (training), 0 flows open", "one has gone")
            assert daemon.stop() == 0
        last = b"\n".join(manager.received).decode()
    assert "STOPPING=1" in last
    assert re.search(r"^STATUS=waits for 1 job, [1-3] s left$", last, re.M), last
    told = statuses(manager)
    assert all(one != other for one, other in zip(told, told[1:], strict=False)), "only what changes"


def test_an_idle_daemon_tells_nothing_more(tmp_path):
    with DatagramSocket(tmp_path / "notify") as manager:
        with SingleDaemon(environment={"NOTIFY_SOCKET": manager.path}) as daemon:
            (trainer,) = daemon.start(SHORT_JOB)
            assert trainer.result()["good"]
            for _ in range(3):
                daemon.serves()
            until(lambda: statuses(manager)[-1] == "no jobs, 0 flows open", "it is idle", PATIENCE_S)
            assert daemon.stop() == 0
        assert len(statuses(manager)) <= 5
