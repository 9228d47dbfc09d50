# SPDX-License-Identifier: Apache-2.0
"""`braidctl pending`: which ranks of a job have not submitted what the others wait for."""

import json

from braid_build import braidctl
from real_cluster import Trainer, needs_daemons, until

pytestmark = needs_daemons

# Rank 1 comes to the second operation when it is told to; the last one of 3 ranks is on the first node, too.
WAITS = """
job = open_job()
weights = job.register([TensorSpec("weights", DType.FLOAT32, 1000)])[0]
biases = job.register([TensorSpec("biases", DType.FLOAT32, 10)])[0]
ended(job, job.submit(weights, 0, np.ones(1000, np.float32)))
say("RUNNING")
if RANK == 1:
    while not os.path.exists(ARGUMENT):
        time.sleep(0.02)
tickets = [job.submit(weights, 1, np.ones(1000, np.float32)), job.submit(biases, 1, np.ones(10, np.float32))]
for ticket in tickets:
    ended(job, ticket)
job.close()
report(good=True)
"""


def pending(trainer: Trainer, *arguments: str) -> dict:
    done = braidctl(trainer.node.socket, "pending", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_missing_rank_is_named_on_every_node(cluster_of, tmp_path):
    cluster = cluster_of(2)
    go_on = tmp_path / "go on"
    trainers = cluster.start(WAITS, nodes=[0, 1, 0], argument=str(go_on), job="waits")
    for trainer in trainers:
        trainer.wait_for("RUNNING")
    first, second = cluster.nodes

    def tells_of_both() -> bool:
        return len(pending(trainers[0])["operations"]) == 2 and all(
            one["submitted"] == [0, 2] for one in pending(trainers[0])["operations"]
        )

    until(tells_of_both, "both operations wait")
    for trainer in trainers[:2]:
        told = pending(trainer, "--job", "waits")
        assert (told["job"], told["world_size"], told["nodes_missing"]) == ("waits", 3, [])
        assert {(one["tensor"], one["step"], one["bytes"]) for one in told["operations"]} == {
            ("weights", 1, 4000), ("biases", 1, 40),
        }  # fmt: skip
        for one in told["operations"]:
            assert one["collective"] == "all-reduce"
            assert one["missing"] == [{"rank": 1, "node": second.name}]
            assert one["unknown"] == []
            assert one["since_ns"] > 0
        assert told["operations"][0]["since_ns"] >= told["operations"][1]["since_ns"]
    text = braidctl(first.socket, "pending").stdout
    assert "job 'waits': 2 operations are pending" in text
    assert f"1 on {second.name}" in text and "weights" in text
    go_on.touch()
    for trainer in trainers:
        assert trainer.result()["good"]


def test_pollers_of_ras_see_the_job_and_who_is_missing(cluster_of, tmp_path):
    cluster = cluster_of(2)
    go_on = tmp_path / "go on"
    trainers = cluster.start(WAITS, nodes=[0, 1, 0], argument=str(go_on), job="polled")
    for trainer in trainers:
        trainer.wait_for("RUNNING")

    def told() -> dict:
        done = braidctl(cluster.nodes[1].socket, "status", "--ras")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    until(lambda: len(told()["communicators"][0]["braid"]["pending"]) == 2, "both operations wait")
    ras = told()
    assert ras["communicators_count"] == 1
    assert ras["ras"]["timeouts_count"] == 0
    (job,) = ras["communicators"]
    assert (job["size"], job["ranks_count"], job["missing_ranks_count"]) == (3, 3, 0)
    assert [rank["rank"] for rank in job["ranks"]] == [0, 1, 2]
    for rank, trainer in zip(job["ranks"], trainers, strict=True):
        assert rank["pid"] == trainer.pid
        assert rank["host"] == trainer.node.address
        assert rank["status"] == {"init_state": 0, "async_error": 0, "finalize_called": False}
        assert rank["collective_counts"]["AllReduce"] == 1
    for one in job["braid"]["pending"]:
        assert [missing["rank"] for missing in one["missing"]] == [1]
    go_on.touch()
    for trainer in trainers:
        assert trainer.result()["good"]


def test_ras_has_no_text_and_no_second_format(cluster_of):
    done = braidctl(cluster_of(2).nodes[0].socket, "status", "--ras", "--json")
    assert done.returncode == 2
    assert "excludes" in done.stderr


def test_nothing_is_pending(cluster_of):
    cluster = cluster_of(2)
    trainers = cluster.start('job = open_job()\nsay("RUNNING")\ntime.sleep(600)', job="idle")
    for trainer in trainers:
        trainer.wait_for("RUNNING")
    assert braidctl(cluster.nodes[1].socket, "pending").stdout == "job 'idle': no operation is pending\n"
    assert pending(trainers[0])["operations"] == []


def test_who_asks_for_nothing_there_is_told(cluster_of):
    done = braidctl(cluster_of(2).nodes[0].socket, "pending", "--job", "nobody")
    assert done.returncode == 1
    assert "no job 'nobody' runs on this node" in done.stderr
