# SPDX-License-Identifier: Apache-2.0
"""Users of one node do not trust each other: what the one does must not reach the other's job."""

import subprocess

import pytest
from real_cluster import SHORT_JOB, needs_daemons, until
from second_user import GROUP_SETTING, NOBODY, NOBODY_UID, needs_nobody, start_neighbour, way_opened

pytestmark = [needs_daemons, needs_nobody]

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
