# SPDX-License-Identifier: Apache-2.0
"""Descriptors that take for ever to close, given to a daemon that is the last to have them."""

import contextlib
import itertools
import os
import resource
from collections.abc import Iterator

import pytest
from braid_build import PATIENCE_S
from real_cluster import (
    PEERS_WAIT,
    SHORT_JOB,
    SUM_FOREVER,
    Node,
    end_running,
    expect_to_go_on,
    needs_daemons,
    until,
    wait_until_running,
)

pytestmark = [needs_daemons, pytest.mark.sanitized]

SOCKETS = 8
DROPPED = "braid_rejected_connections_total.client"
CLOSING = "braid_descriptors_closing"

# The last close of such a socket waits for an hour, but not in a process that ends. So it is a child
# that makes them, and it ends without closing any. The parent has the other ends, and does not read.
LINGERING = """
import socket, struct, traceback
SOCKETS, IS_NESTED, PATIENCE_S = ARGUMENT
DEADLINE = time.monotonic() + PATIENCE_S

def lingering(address):
    one = socket.create_connection(address)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    one.setblocking(False)
    try:
        while True:
            one.send(bytes(1 << 16))
    except BlockingIOError:
        return one

def attack(address):
    kept = []
    for daemon in daemons:
        given = lingering(address)
        kept.append(given)
        if IS_NESTED:
            end, other = socket.socketpair()
            socket.send_fds(other, [b"x"], [given.fileno()])
            kept += [end, other]
            given = end
        # The first half of a Hello, with a descriptor that it does not have.
        socket.send_fds(daemon, [bytes([32, 0, 0, 0])], [given.fileno()])
    os._exit(0)

server = socket.create_server(("127.0.0.1", 0), backlog=SOCKETS)
server.settimeout(PATIENCE_S)
daemons = [socket.socket(socket.AF_UNIX) for _ in range(SOCKETS)]
for daemon in daemons:
    daemon.settimeout(PATIENCE_S)
    daemon.connect(os.environ["BRAID_SOCKET"])
child = os.fork()
if child == 0:
    try:
        attack(server.getsockname())
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # from within here, where nothing of it has been closed
peers = [server.accept()[0] for _ in range(SOCKETS)]
while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
    assert time.monotonic() < DEADLINE, "the child does not end"
    time.sleep(0.01)
assert ended[1] == 0, ended
say("SENT")
for daemon in daemons:
    try:
        assert daemon.recv(1) == b""
    except ConnectionResetError:
        pass
say("DROPPED")
time.sleep(600)
"""


@pytest.mark.parametrize("is_nested", [False, True], ids=["sockets", "sockets in sockets"])
def test_sockets_that_linger_hold_up_nobody(cluster_of, is_nested):
    cluster = cluster_of(2, PEERS_WAIT)
    node = cluster.nodes[0]
    innocent = cluster.start(SUM_FOREVER)
    wait_until_running(innocent)
    dropped = node.counter(DROPPED)
    with node.stopped():  # only its queues have the sockets when it goes on
        (attacker,) = cluster.start(LINGERING, nodes=[0], argument=[SOCKETS, is_nested, PATIENCE_S])
        attacker.wait_for("SENT")
    attacker.wait_for("DROPPED")
    until(lambda: node.counter(DROPPED) == dropped + SOCKETS, "all are dropped for what they sent")
    expect_to_go_on(innocent)
    until(lambda: node.counter(CLOSING) == 0, "all are closed")
    attacker.kill()
    end_running(innocent)
    cluster.expect_healthy()


@contextlib.contextmanager
def few_descriptors_left(node: Node, count: int) -> Iterator[None]:
    """The node's daemon can open so many descriptors more."""
    before = resource.prlimit(node.daemon_pid, resource.RLIMIT_NOFILE)
    used = {int(name) for name in os.listdir(f"/proc/{node.daemon_pid}/fd")}
    free = (number for number in range(len(used) + count + 1) if number not in used)
    limit = list(itertools.islice(free, count))[-1] + 1
    resource.prlimit(node.daemon_pid, resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.prlimit(node.daemon_pid, resource.RLIMIT_NOFILE, before)


# Room for a connection, but not for what comes with its first message; and for a trainer, but not
# for the flows to the other node.
@pytest.mark.parametrize("left", [3, 20], ids=["a connection", "a trainer"])
def test_a_daemon_without_descriptors_names_the_limit(cluster_of, left):
    cluster = cluster_of(2, PEERS_WAIT, f"debug.jobs_max={100 + left}")
    with few_descriptors_left(cluster.nodes[0], left):
        error = cluster.start(SHORT_JOB)[0].error()
    assert "this process has no file descriptors left (limit " in error["text"], error
    assert "LimitNOFILE" in error["text"], error
    for trainer in cluster.trainers:
        trainer.kill()
    for trainer in cluster.start(SHORT_JOB):
        assert trainer.result()["good"]
    cluster.expect_healthy()


# One descriptor more for each try.
OPEN_WITH_FEW = """
import resource
used = {int(name) for name in os.listdir("/proc/self/fd")}
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
texts = []
for limit in range(max(used) + 1, max(used) + 40):
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        open_job(f"few {limit}").close()
        break
    except braid.BraidError as error:
        texts.append(str(error))
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
report(texts=texts)
"""


def test_a_trainer_without_descriptors_is_told_at_once(cluster_of):
    (trainer,) = cluster_of(1, PEERS_WAIT).start(OPEN_WITH_FEW, nodes=[0])
    texts = trainer.result()["texts"]
    assert 5 < len(texts) < 39
    for text in texts:
        assert "no file descriptors left" in text, text


def test_a_daemon_raises_its_limit_of_descriptors(cluster_of):
    node = cluster_of(2, PEERS_WAIT).nodes[0]
    soft, hard = resource.prlimit(node.daemon_pid, resource.RLIMIT_NOFILE)
    assert soft == hard
