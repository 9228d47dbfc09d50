# SPDX-License-Identifier: Apache-2.0
"""Users of one node do not trust each other: what the one does must not reach the other's job."""

import json
import re
import signal
import subprocess

import pytest
from braid_build import BRAIDCTL, REPOSITORY, ran
from real_cluster import (
    SHORT_JOB,
    SUM_FOREVER,
    end_running,
    expect_to_go_on,
    needs_daemons,
    until,
    wait_until_running,
)
from second_user import GROUP_SETTING, NOBODY, NOBODY_UID, needs_nobody, start_neighbour, way_opened

pytestmark = [needs_daemons, needs_nobody, pytest.mark.sanitized]

LISTEN = """
import socket, sys
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[1])
    listener.listen()
    print("listening", flush=True)
    connection, _ = listener.accept()
    print("got", connection.recv(100), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def users(cluster_of):
    """Two nodes that nobody may use, too."""
    cluster = cluster_of(2, GROUP_SETTING)
    with way_opened(cluster.nodes[0].socket), way_opened(cluster.nodes[1].socket):
        yield cluster


def expect_right_sums(trainers) -> None:
    for trainer in trainers:
        assert trainer.result()["good"]


def test_a_stranger_takes_neither_a_rank_nor_the_name(users):
    log = len(users.nodes[0].log())
    # Each comes first, as a rank that the job needs; the second has a token, but not the job's.
    wait = "open_job('wanted', ARGUMENT, 2, timeout=600)"
    strangers = [
        start_neighbour(users, wait, 1),
        start_neighbour(users, wait, 0, {"BRAID_JOB_TOKEN": "a guess"}),
    ]
    until(
        lambda: users.nodes[0].log()[log:].count("job 'wanted': rank") >= 4, "the strangers are in"
    )
    secret = {"BRAID_JOB_TOKEN": "only ours"}
    expect_right_sums(users.start(SHORT_JOB, job="wanted", environment=secret))
    expect_right_sums(users.start(SHORT_JOB, job="wanted"))  # of root, without a token
    assert all(stranger.process.poll() is None for stranger in strangers)  # wait for their own
    assert "'wanted' has no token and is on 2 nodes" in users.nodes[0].log()[log:]


def test_who_listens_in_place_of_the_daemon_is_given_nothing(users, tmp_path):
    path = f"/tmp/braid-test-{tmp_path.name}-{users.id}.sock"
    with way_opened(path):
        squatter = subprocess.Popen(
            [*NOBODY, "/usr/bin/python3", "-c", LISTEN, path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/",
        )  # fmt: skip
        try:
            assert squatter.stdout.readline() == "listening\n"
            (trainer,) = users.start("open_job()", nodes=[0], BRAID_SOCKET={0: path})
            error = trainer.error()
            assert squatter.stdout.readline() == "got b''\n"
        finally:
            squatter.kill()
            squatter.communicate()
            subprocess.run(["rm", "-f", path], check=True)
    assert error["error"] == "BRAID_ERROR_PERMISSION_DENIED", error
    assert f"'{path}' runs as user {NOBODY_UID} and is not taken for braidd" in error["text"]


def ask(node, *arguments: str, as_nobody: bool = False) -> subprocess.CompletedProcess:
    prefix = NOBODY if as_nobody else []
    return ran([*prefix, BRAIDCTL, "--socket", node.socket, *arguments], cwd="/")


MODEST = "job = open_job('mine'); sum_of(job, 10); report(opened=True); time.sleep(600)"


def expect_nobody_sees_only(node, mine: str, hidden: int) -> None:
    def jobs_shown() -> tuple[list[str], int]:
        seen = json.loads(ask(node, "status", "--json", as_nobody=True).stdout)
        return [job["name"] for job in seen["jobs"]], seen["jobs_hidden"]

    # Jobs that have just ended are still there for a moment.
    until(lambda: jobs_shown() == ([mine], hidden), f"nobody sees '{mine}' and {hidden} hidden")


def test_queries_show_ones_own_jobs(users):
    node = users.nodes[0]
    wait_until_running(users.start(SUM_FOREVER, job="secret-project"))
    start_neighbour(users, MODEST).wait_for("opened")

    expect_nobody_sees_only(node, "mine", hidden=1)
    assert "1 job of other users is not shown" in ask(node, "status", as_nobody=True).stdout
    for command in (["plan", "--job"], ["tune", "--job"]):
        asked = ask(node, *command, "secret-project", as_nobody=True)
        assert asked.returncode != 0
        assert "1 job of other users is not shown" in asked.stderr, asked.stderr
    assert "secret-project" not in ask(node, "tune", as_nobody=True).stdout
    assert sorted(job["name"] for job in node.status()["jobs"]) == ["mine", "secret-project"]
    assert node.status()["jobs_hidden"] == 0


QUOTAS = [
    "debug.user_connections_max=8",
    "client.user_jobs_max=3",
    "client.user_result_bytes_max=16MiB",
    "debug.user_tensors_max=100",
]
GREEDY = {
    "client.user_jobs_max": "jobs = [open_job(f'job {i}') for i in range(4)]",
    "client.user_result_bytes_max": """
job = open_job('large')
tensor = job.register([braid.TensorSpec("stream", dynamic=True)])[0]
kept = [sum_of(job, 200_000, step, tensor) for step in range(20)]
""",
    "registered tensors": """
open_job('names').register([braid.TensorSpec(f"tensor {i}", count=1) for i in range(101)])
""",
}


def test_who_wants_too_much_is_told_of_what_and_others_go_on(cluster_of):
    cluster = cluster_of(2, GROUP_SETTING, *QUOTAS)
    node = cluster.nodes[0]

    def steps_of_innocents() -> int:
        return sum(job["steps_done"] for job in node.status()["jobs"] if job["name"] == "innocent")

    with way_opened(node.socket):
        innocents = cluster.start(SUM_FOREVER, job="innocent")  # every sum is checked
        wait_until_running(innocents)
        modest = start_neighbour(cluster, MODEST)  # the same user's other job
        modest.wait_for("opened")
        for what, source in GREEDY.items():
            error = start_neighbour(cluster, source).error()
            assert error["error"] == "BRAID_ERROR_RESOURCE_EXHAUSTED", (what, error)
            assert what in error["text"] and f"user {NOBODY_UID}" in error["text"], error
            expect_nobody_sees_only(node, "mine", hidden=1)
        # Connections that wait for ranks which never come.
        crowd = [start_neighbour(cluster, "open_job('crowd', ARGUMENT, 20)", i) for i in range(9)]
        until(lambda: any(t.process.poll() is not None for t in crowd), "one is refused")
        refused = next(t for t in crowd if t.process.poll() is not None)
        assert "connections on this node" in refused.error()["text"], refused.output()
        expect_right_sums(cluster.start(SHORT_JOB))  # root has room
        steps = steps_of_innocents()
        until(lambda: steps_of_innocents() > steps, "the innocents' job goes on")
        assert all(trainer.process.poll() is None for trainer in [*innocents, modest])
        for trainer in [*crowd, *innocents, modest]:
            trainer.kill()
    cluster.expect_healthy()


STAY = """
job = open_job()
ended(job, job.submit(dynamic(job), 0, np.ones(1000, np.float32)))
say("RUNNING")
if RANK == 1:
    time.sleep(600)
job.close()
report(good=True)
"""


@pytest.mark.plain
def test_a_stopped_rank_keeps_neither_memory_nor_place(cluster_of):
    cluster = cluster_of(2, "debug.leave_timeout_ms=5000")
    cluster.expect_healthy()  # links are open from then on
    before = cluster.settled_footprints()
    left = cluster.start(STAY, job="left")
    failed = cluster.start(SUM_FOREVER, job="failed")
    wait_until_running([*left, *failed])
    stopped = [left[1], failed[1]]
    for trainer in stopped:
        trainer.process.send_signal(signal.SIGSTOP)
    assert left[0].result()["good"]
    failed[0].kill()
    cluster.expect_footprints(before)
    assert all(trainer.process.poll() is None for trainer in stopped)
    for trainer in stopped:
        trainer.kill()


# Frames as any process can write them: connections that ask for the daemon's status 16 times each,
# read nothing until all have asked, and begin anew.
ASK_AND_ASK = """
import socket, struct
CONNECTIONS, VERSION = ARGUMENT
HELLO, STATUS_QUERY, FAILURE = 1, 11, 8

def frame(kind, body):
    message = struct.pack("<IHHHHiIBxxx", 12, 8, 12, 8, 4, 8, len(body[0]) + 8, kind)
    message += b"".join(body)
    return struct.pack("<I", len(message)) + message

version = b"9.9.9"
hello = frame(HELLO, [
    struct.pack("<HHHH", 8, 12, 4, 8),
    struct.pack("<iIII", 8, VERSION, 4, len(version)) + version + bytes(3),
])
query = frame(STATUS_QUERY, [struct.pack("<HH", 4, 4), struct.pack("<i", 4)])

def received(connection, count):
    data = b""
    while len(data) < count:
        some = connection.recv(count - len(data))
        if not some:
            raise ConnectionResetError
        data += some
    return data

def read_frame(connection):
    return received(connection, struct.unpack("<I", received(connection, 4))[0])

def greeted():
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    connection.connect(os.environ["BRAID_SOCKET"])
    connection.sendall(hello)
    read_frame(connection)
    return connection

said = False
while True:
    connections = [greeted() for _ in range(CONNECTIONS)]
    answers, refusals = 0, set()
    for connection in connections:
        connection.sendall(query * 16)
    for connection in connections:
        try:
            for _ in range(16):
                answer = read_frame(connection)
                if b"queries without an answer" in answer:
                    refusals.add(answer.decode(errors="replace"))
                answers += 1
        except (ConnectionResetError, BrokenPipeError):
            pass
        connection.close()
    if not said:
        report(answers=answers, refusals=len(refusals))
        said = True
"""


def client_protocol_version() -> int:
    header = (REPOSITORY / "proto" / "version.h").read_text()
    return int(re.search(r"kClientProtocolVersion = (\d+)", header)[1])


def test_who_asks_much_is_limited_and_others_go_on(users):
    innocents = users.start(SUM_FOREVER, job="innocent")  # every sum is checked
    wait_until_running(innocents)
    flood = start_neighbour(users, ASK_AND_ASK, [400, client_protocol_version()])
    until(lambda: flood.results() or flood.process.poll() is not None, "all have asked once")
    assert flood.results(), flood.output()
    assert flood.results()[0]["answers"] > 0
    assert flood.results()[0]["refusals"] > 0
    expect_to_go_on(innocents)
    expect_right_sums(users.start(SHORT_JOB))  # joins meanwhile
    assert json.loads(ask(users.nodes[0], "status", "--json").stdout)["jobs_hidden"] == 0
    assert flood.process.poll() is None, flood.output()
    flood.kill()
    end_running(innocents)
    users.expect_healthy()


# Its jobs have different names, and each loses its only rank.
FAIL_MANY = """
for number in range(ARGUMENT):
    if os.fork() == 0:
        open_job(f"flood-{number}")
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 1
report(good=True)
"""


def test_failures_of_one_user_hide_no_failure_of_another_in_the_log(users):
    node = users.nodes[0]
    mine = users.start(SUM_FOREVER, job="mine")
    wait_until_running(mine)
    assert start_neighbour(users, FAIL_MANY, 80).result()["good"]
    mine[1].kill()
    until(lambda: re.search(r"warn job 'mine' failed: .*lost rank 1", node.log()), "the failure is told")
    assert len(re.findall(r"warn job 'flood-\d+' failed: ", node.log())) < 80  # the others are counted
    mine[0].kill()
