# SPDX-License-Identifier: Apache-2.0
"""Ranks and nodes that disagree or do not come: an error that tells both sides, never a hang."""

import re
import signal

import pytest
from braid_build import IS_SANITIZED
from real_cluster import Cluster, needs_daemons

pytestmark = [needs_daemons, pytest.mark.sanitized]

OPEN = "open_job(timeout=ARGUMENT)"
# ARGUMENT: for each rank the tensor's name, dtype, count, collective and reduction; seconds.
SUBMIT = """
name, dtype, count, collective, reduction = ARGUMENT["calls"][RANK]
job = open_job()
tensor = job.register([TensorSpec("warm-up", DType.UINT8, 1), TensorSpec(name, dynamic=True)])
ended(job, job.submit(tensor[0], 0, np.ones(1, np.uint8)))
data = np.zeros(count * WORLD, np.float64)
ended(job, job.submit(tensor[1], 7, data.ctypes.data, collective=Collective[collective],
                      dtype=DType[dtype], count=count, reduction=Reduction[reduction],
                      timeout=ARGUMENT["timeout"]))
"""
# The last rank expects other sizes than the first one gives: ARGUMENT, to and from the last rank.
SPLITS = """
given, expected = ARGUMENT
job = open_job()
stream, last = dynamic(job), WORLD - 1
def elements(between_them):
    return [between_them if {RANK, other} == {0, last} else 2 for other in range(WORLD)]
to = elements(given)
from_ = elements(given if RANK == 0 else expected)
data = np.zeros(sum(to), np.float32)
ended(job, job.submit(stream, 0, data, collective=Collective.ALL_TO_ALL, input_splits=to,
                      output_splits=from_))
"""
PLAIN = ("layer3.weight", "FLOAT32", 1000, "ALL_REDUCE", "SUM")
# What is awaited in vain is given so long that all ranks that do come have come, on any machine.
IN_VAIN_S = 5
PLACES = pytest.mark.parametrize("placed", [[0, 1, 2], [0, 0]], ids=str)


def differing(**change) -> tuple:
    keys = ("name", "dtype", "count", "collective", "reduction")
    return tuple(change.get(key, was) for key, was in zip(keys, PLAIN, strict=True))


@PLACES
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"count": 1001}, ["1000", "1001"]),
        ({"dtype": "FLOAT64"}, ["float32", "float64"]),
        ({"reduction": "MAX"}, ["sum", "max"]),
        ({"collective": "BROADCAST"}, ["all-reduce", "broadcast"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_tensors_that_differ_are_refused_with_both_signatures(cluster_of, placed, change, says):
    cluster = cluster_of(3)
    calls = [PLAIN] * (len(placed) - 1) + [differing(**change)]
    argument = {"calls": calls, "timeout": 60}
    for trainer in cluster.start(SUBMIT, nodes=placed, argument=argument):
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_MISMATCH", error
        assert "'layer3.weight' step 7" in error["text"], error
        for word in [*says, f"rank {len(placed) - 1}"]:
            assert word in error["text"], error
    cluster.expect_healthy(placed)


# Also where one thinks that there is nothing to send.
@PLACES
@pytest.mark.parametrize(("given", "expected"), [(5, 7), (5, 0), (0, 5)])
def test_splits_that_differ_are_refused_with_both_numbers(cluster_of, placed, given, expected):
    cluster = cluster_of(3)
    for trainer in cluster.start(SPLITS, nodes=placed, argument=[given, expected]):
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_MISMATCH", error
        assert "'stream' step 0, all-to-all of float32" in error["text"], error
        told = f"rank 0 gives( {given} elements)? to rank {len(placed) - 1}"
        assert re.search(told, error["text"]), error
        assert re.search(rf"\b{given} elements", error["text"]), error
        assert re.search(rf"expect(s|ed there are) {expected}\b", error["text"]), error
    cluster.expect_healthy(placed)


@pytest.mark.plain
@PLACES
def test_a_name_that_only_one_rank_has_ends_at_the_deadline_with_who_did_what(cluster_of, placed):
    cluster = cluster_of(3)
    calls = [PLAIN] * (len(placed) - 1) + [differing(name="layer4.weight")]
    argument = {"calls": calls, "timeout": IN_VAIN_S}
    last = len(placed) - 1
    for trainer in cluster.start(SUBMIT, nodes=placed, argument=argument):
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_DEADLINE_EXCEEDED", error
        # Whose deadline came first is chance: either story names the rank, what it lacks and why.
        overdue = re.search(r"'(layer\d)\.weight' step 7, all-reduce", error["text"])
        assert overdue, error
        missing = re.search(r"not submitted by rank ([\d, ]+) on node '(node\d)'", error["text"])
        assert missing, error
        assert "has not registered this tensor" in error["text"], error
        if overdue[1] == "layer3":
            assert (missing[1], missing[2]) == (str(last), f"node{placed[last]}"), error
        else:
            assert (missing[1], missing[2]) == ("0", "node0"), error
    cluster.expect_healthy(placed)


@pytest.mark.plain
@PLACES
def test_a_rank_that_never_submits_is_named_with_what_it_did_last(cluster_of, placed):
    cluster = cluster_of(3)
    source = """
job = open_job()
a, b = job.register([TensorSpec("a", DType.INT32, 3), TensorSpec("b", DType.INT32, 3)])
ended(job, job.submit(a, 5, np.ones(3, np.int32)))
if RANK == 1:
    time.sleep(600)
ended(job, job.submit(b, 5, np.ones(3, np.int32), timeout=ARGUMENT))
"""
    trainers = cluster.start(source, nodes=placed, argument=IN_VAIN_S)
    for trainer in trainers:
        if trainer.rank == 1:
            continue
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_DEADLINE_EXCEEDED", error
        for words in [
            "'b' step 5", f"within {IN_VAIN_S * 1000} ms", f"not submitted by rank 1 on node 'node{placed[1]}'",
            "rank 1 has last submitted 'a' step 5",
        ]:  # fmt: skip
            assert words in error["text"], error
    trainers[1].kill()
    cluster.expect_healthy(placed)


@pytest.mark.plain
def test_ranks_that_never_join_are_named_when_the_time_is_over(cluster_of):
    cluster = cluster_of(3)
    seconds = 20 if IS_SANITIZED else IN_VAIN_S
    started = cluster.start(OPEN, nodes=[0, 1], argument=seconds, environment={"WORLD_SIZE": "4"})
    for trainer in started:
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_DEADLINE_EXCEEDED", error
        says = f"2 of 4 ranks joined within {seconds * 1000} ms; missing: rank 2, 3"
        assert says in error["text"], error
    cluster.expect_healthy()


@PLACES
def test_a_world_size_that_differs(cluster_of, placed):
    cluster = cluster_of(3)
    for trainer in cluster.start(OPEN, nodes=placed, argument=60, WORLD_SIZE={1: "7"}):
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_MISMATCH", error
        assert "disagree about the world size" in error["text"], error
        assert f"rank 1 (node 'node{placed[1]}') says 7" in error["text"], error
        assert f"says {len(placed)}" in error["text"], error
    cluster.expect_healthy(placed)


@PLACES
def test_a_weight_that_differs(cluster_of, placed):
    cluster = cluster_of(3)
    for trainer in cluster.start(OPEN, nodes=placed, argument=60, BRAID_JOB_WEIGHT={1: "3"}):
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_MISMATCH", error
        assert "disagree about the weight (BRAID_JOB_WEIGHT)" in error["text"], error
        assert f"rank 1 (node 'node{placed[1]}') says 3" in error["text"], error
        assert "says 1" in error["text"], error
    cluster.expect_healthy(placed)


@PLACES
def test_a_rank_that_is_given_twice(cluster_of, placed):
    cluster = cluster_of(3)
    for trainer in cluster.start(OPEN, nodes=placed, argument=60, RANK={1: "0"}):
        error = trainer.error()
        assert error["error"] == "BRAID_ERROR_ALREADY_EXISTS", error
        assert "rank 0 was given twice" in error["text"], error
        assert "node 'node0'" in error["text"] and f"node 'node{placed[1]}'" in error["text"], error
    cluster.expect_healthy(placed)


def test_a_rank_outside_of_the_world(cluster_of):
    (trainer,) = cluster_of(3).start(OPEN, nodes=[0], argument=5, environment={"WORLD_SIZE": "1"},
                                     RANK={0: "1"})  # fmt: skip
    error = trainer.error()
    assert error["error"] == "BRAID_ERROR_INVALID_ARGUMENT" and "rank" in error["text"], error


def with_other_settings(node, cluster: Cluster, **settings: str) -> None:
    """Starts the node's daemon again with these settings after its own."""
    node.signal(signal.SIGTERM)
    cluster.wait_until_gone(node)
    for key, value in settings.items():
        node.daemon_command = [*node.daemon_command, "--set", f"{key.replace('__', '.')}={value}"]
    node.restart()


def test_nodes_that_cut_differently_are_refused_with_both_values():
    with Cluster(2) as cluster:
        with_other_settings(cluster.nodes[1], cluster, transport__chunk_bytes="64KiB")
        for trainer in cluster.start(OPEN, argument=60):
            error = trainer.error()
            assert error["error"] == "BRAID_ERROR_MISMATCH", error
            for word in ("transport.chunk_bytes", "131072", "65536", "'node0'", "'node1'"):
                assert word in error["text"], error
        cluster.expect_healthy([0])
        cluster.expect_healthy([1])


def test_another_cluster_key_is_refused_logged_and_counted(tmp_path):
    key = tmp_path / "other.key"
    key.write_text("another secret, long enough to be one\n")
    key.chmod(0o600)
    with Cluster(2) as cluster:
        with_other_settings(cluster.nodes[1], cluster, control__cluster_key_file=str(key))
        for trainer in cluster.start(OPEN, argument=IN_VAIN_S):
            error = trainer.error()
            if trainer.rank == 1:
                assert "cluster key does not match" in error["text"], error
            else:
                assert "missing: rank 1" in error["text"], error
        assert "cluster key does not match" in cluster.nodes[0].log()
        refused = cluster.nodes[0].counter("braid_rejected_connections_total.control")
        assert refused >= 1
        # It is tried again while the trainer waits, and does not fill the log.
        assert cluster.nodes[0].log().count("cluster key does not match") <= 12
        cluster.expect_healthy([0])
