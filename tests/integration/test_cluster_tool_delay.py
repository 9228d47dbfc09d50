# SPDX-License-Identifier: Apache-2.0
"""scripts/cluster --delay-ms, --jitter-ms, --loss-percent: what packets meet, and what is left of it."""

import os
import signal

import pytest
from braid_build import BUILD, ran
from cluster_tool import (
    DEADLINE_S,
    EXIT_TOOL_FAILED,
    REFUSED,
    Running,
    by_rank,
    cluster,
    eventually,
    is_running,
    python,
)

PROGRAM = "braid-delay-line"
MISSING = next(
    (
        what
        for what, is_missing in (
            (REFUSED, REFUSED is not None),
            ("/dev/net/tun is not here", not os.path.exists("/dev/net/tun")),
            (f"{PROGRAM} is not built", not (BUILD / "bin" / PROGRAM).exists()),
        )
        if is_missing
    ),
    None,
)
needs_delay_line = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))

# Rank 0 asks ASKED times, one after the other or all at once, and rank 1 answers. Rank 0 prints for each answer the
# number of what was asked and its round trip in seconds.
ASKED = 100
PING = """
import json, os, socket, sys, time
with open(os.environ["BRAID_CLUSTER_DIR"] + "/cluster.json") as file:
    nodes = json.load(file)["nodes"]
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
rank, asked = int(os.environ["RANK"]), int(os.environ["ASKED"])
peer.bind((nodes[rank]["address"], 7000))
if rank == 1:
    with open(os.environ["BRAID_CLUSTER_DIR"] + "/answers", "w"):
        pass
    while (question := peer.recvfrom(100))[0] != b"end":
        peer.sendto(*question)
else:
    while not os.path.exists(os.environ["BRAID_CLUSTER_DIR"] + "/answers"):
        time.sleep(0.01)
    sent = []
    def ask():
        sent.append(time.monotonic())
        peer.sendto(b"%d" % (len(sent) - 1), (nodes[1]["address"], 7000))
    def is_answered(patience_s):
        peer.settimeout(patience_s)
        try:
            number = int(peer.recv(100))
        except TimeoutError:
            return False
        print(number, time.monotonic() - sent[number])
        return True
    if os.environ["AT_ONCE"] == "yes":
        for _ in range(asked):
            ask()
        while is_answered(3):
            pass
    else:
        for _ in range(asked):
            ask()
            while not is_answered(0.5):
                ask()
    for _ in range(100):
        peer.sendto(b"end", (nodes[1]["address"], 7000))
"""
# Rank 0 sends 8 MiB to rank 1 in large pieces, and both print a digest.
TRANSFER = """
import hashlib, json, os, random, socket, time
with open(os.environ["BRAID_CLUSTER_DIR"] + "/cluster.json") as file:
    address = json.load(file)["nodes"][1]["address"]
port = int(os.environ["MASTER_PORT"])
if os.environ["RANK"] == "1":
    with socket.create_server((address, port)) as server:
        server.settimeout(30)
        peer, _ = server.accept()
        data = b"".join(iter(lambda: peer.recv(1 << 20), b""))
else:
    data = random.Random(1).randbytes(8 << 20)
    for attempt in range(300):
        try:
            peer = socket.create_connection((address, port))
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    peer.sendall(data)
    peer.close()
print(hashlib.sha256(data).hexdigest())
"""


def round_trips(*arguments: str, at_once: bool = False) -> list[tuple[int, float]]:
    """[(number of the question, seconds)] of all answers."""
    environment = {**os.environ, "ASKED": str(ASKED), "AT_ONCE": "yes" if at_once else "no"}
    done = cluster(*arguments, *python(PING), env=environment)
    assert done.returncode == 0, done.stderr
    return [(int(line.split()[0]), float(line.split()[1])) for line in by_rank(done.stdout)[0]]


@needs_delay_line
@pytest.mark.parametrize(
    ("arguments", "at_least"),
    [
        (["--delay-ms", "3"], 0.006),
        (["--delay-ms", "3", "--nic-mbit", "1000", "--flow-mbit", "100"], 0.006),
        (["--delay-ms", "5", "--jitter-ms", "2"], 0.006),
    ],
)
def test_no_round_trip_is_shorter_than_twice_the_delay(arguments, at_least):
    # However busy the machine is: it makes them longer, never shorter.
    found = round_trips(*arguments)
    assert len(found) >= ASKED and min(seconds for _, seconds in found) >= at_least


@needs_delay_line
def test_packets_are_lost():
    # Once in 10^9 runs none of 100 pings each way would be lost.
    assert 10 < len(round_trips("--loss-percent", "10", "--seed", "3", at_once=True)) < ASKED


@needs_delay_line
def test_what_was_lost_of_a_connection_is_sent_again():
    done = cluster("--loss-percent", "2", "--delay-ms", "0.2", *python(TRANSFER))
    assert done.returncode == 0, done.stderr
    digests = by_rank(done.stdout)
    assert digests[0] == digests[1]
    [counted] = [line for line in done.stderr.splitlines() if "delay line:" in line]
    lost = int(counted.partition("arrived, ")[2].split()[0])
    # 5,800 packets with data. All of a large segment would go at once if it were lost as a whole.
    assert lost > 20


@needs_delay_line
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_delay_line_ends_with_its_tool(number):
    with Running("--delay-ms", "1") as running:
        line = running.state["delay_line_pid"]
        assert is_running(line)
        running.tool.send_signal(number)
        assert eventually(lambda: running.is_gone() and not is_running(line))


@needs_delay_line
def test_a_cluster_whose_delay_line_dies_has_failed():
    with Running("--delay-ms", "1") as running:
        os.kill(running.state["delay_line_pid"], signal.SIGKILL)
        assert running.tool.wait(DEADLINE_S) == EXIT_TOOL_FAILED
        assert running.is_gone()


@needs_delay_line
def test_a_missing_device_is_named():
    hidden = "mount -t tmpfs none /dev/net && exec \"$@\""
    prefix = ("unshare", "--mount", "sh", "-c", hidden, "sh")
    done = cluster("--delay-ms", "1", "--", "echo", "ran", prefix=prefix)
    assert done.returncode == EXIT_TOOL_FAILED and "ran" not in done.stdout
    assert "the delay line did not start" in done.stderr and "/dev/net/tun" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--delay-ms", "long", "--", "true"], "'long' is not a number"),
        (["--jitter-ms", "1", "--", "true"], "nothing arrives before it was sent"),
        (["--loopback", "--delay-ms", "1", "--", "true"], "--loopback cannot delay"),
        (["--set-caps", "/tmp", "--delay-ms", "1"], "--set-caps cannot change delay"),
    ],
)
def test_bad_arguments_are_explained(arguments, complaint):
    done = cluster(*arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
