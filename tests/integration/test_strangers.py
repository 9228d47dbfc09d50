# SPDX-License-Identifier: Apache-2.0
"""Strangers at every door of a daemon: dropped, counted, logged once; nobody else notices."""

import pathlib
import subprocess
import sys

import pytest
from braid_build import IS_SANITIZED, PATIENCE_S, ran
from real_cluster import SUM_FOREVER, Cluster, needs_daemons, until, wait_until_running

pytestmark = [needs_daemons, pytest.mark.sanitized, pytest.mark.transports]

FOLDER = pathlib.Path(__file__).resolve().parent
STRANGERS = str(FOLDER / "strangers.py")
FLOW_ATTACK = str(FOLDER / "flow_attack.py")
HOW = ["garbage", "halves", "silence", "zeros"]
CONTROL_PORT, METRICS_PORT = 7410, 9431
# A flow that is opened again has another port, and these are looked up once.
SETTINGS = (
    "transport.flows_per_link=2", "debug.connect_timeout_ms=1000", "debug.slow_flow_percent=0"
)  # fmt: skip
# A sanitizer keeps what was freed for a while.
RSS_GROWTH_MAX = (256 if IS_SANITIZED else 64) << 20
# Log lines that one stranger's visit may cause, whatever it does.
LINES_MAX = 40
# A stranger is not always in time.
ATTACKS, FLOWS = 2, 16


def listening_ports(node) -> list[int]:
    lines = node.run("ss", "-tlnpH").splitlines()
    mine = [line.split()[3] for line in lines if f"pid={node.daemon_pid}," in line]
    return sorted({int(local.rpartition(":")[2]) for local in mine})


def visit(node, how: str, *where: str) -> int:
    done = ran(node.enter([sys.executable, STRANGERS, how, *where]))
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def rejected(node) -> dict[str, int]:
    name = "braid_rejected_connections_total."
    counters = node.status()["counters"]
    return {key.removeprefix(name): n for key, n in counters.items() if key.startswith(name)}


def kind_of(port: int) -> str:
    return {CONTROL_PORT: "control", METRICS_PORT: "metrics"}.get(port, "transport")


class Watched:
    """A cluster with a running job, and what a visit must not change."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.victim, self.stranger = cluster.nodes[0], cluster.nodes[1]
        self.trainers = cluster.start(SUM_FOREVER)
        wait_until_running(self.trainers)
        self.rss = self.victim.rss_bytes()
        self.lines = self.victim.log().count("\n")
        self.rejected = rejected(self.victim)

    def expect_unimpressed(self, door: str) -> None:
        grown = self.victim.rss_bytes() - self.rss
        assert grown < RSS_GROWTH_MAX, f"{door}: grew by {grown >> 20} MiB"
        lines = self.victim.log().splitlines()[self.lines :]
        assert len(lines) <= LINES_MAX, "\n".join(lines)
        steps = self.victim.status()["jobs"][0]["steps_done"]
        until(lambda: self.victim.status()["jobs"][0]["steps_done"] > steps + 2, "the job goes on")
        for trainer in self.trainers:
            assert trainer.process.poll() is None, trainer.output()  # sums stayed exact

    def end(self) -> None:
        for trainer in self.trainers:
            trainer.kill()
        self.cluster.expect_healthy()


@pytest.mark.parametrize("how", HOW)
def test_at_every_tcp_port(cluster_of, how):
    cluster = cluster_of(2, *SETTINGS)
    watched = Watched(cluster)
    ports = listening_ports(watched.victim)
    assert CONTROL_PORT in ports and METRICS_PORT in ports and len(ports) >= 3, ports
    # The flows' ports are all of one kind: two of them speak for all.
    ports = [CONTROL_PORT, METRICS_PORT] + [p for p in ports if kind_of(p) == "transport"][:2]
    for port in ports:
        made = visit(watched.stranger, how, watched.victim.address, str(port))
        assert made > 0
        assert watched.victim.is_alive(), f"{kind_of(port)} port:\n{watched.victim.log()[-6000:]}"
        watched.expect_unimpressed(f"{kind_of(port)} port {port}")
    until(lambda: rejected(watched.victim)["control"] > watched.rejected["control"], "it counts")
    assert "refused the connection" in watched.victim.log()
    watched.end()


class FlowAttack:
    """User nobody on the victim's node, who waits for flows to be opened."""

    def __init__(self, node):
        self.node = node
        self.process = subprocess.Popen(
            node.enter([sys.executable, FLOW_ATTACK, str(CONTROL_PORT), str(METRICS_PORT)]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout.readline() == "READY\n"

    def speak(self) -> int:
        """What was held back is said. Returns how many ports it knew."""
        self.process.stdin.write("now\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)


@pytest.mark.parametrize("tcp", ["native", "ucx"])
def test_who_connects_while_flows_are_opened_reaches_nothing(tcp):
    settings = (f"transport.flows_per_link={FLOWS}", "debug.slow_flow_percent=0", f"transport.tcp={tcp}")
    for _ in range(ATTACKS):
        with Cluster(2, settings) as cluster:
            attacks = [FlowAttack(node) for node in cluster.nodes]
            watched = Watched(cluster)
            seen = [attack.speak() for attack in attacks]
            # A port that is shut within a millisecond is never seen.
            assert min(seen) > 0, seen
            watched.expect_unimpressed("flows' ports")
            for attack in attacks:
                attack.end()
            watched.end()


@pytest.mark.parametrize("how", HOW)
def test_at_the_unix_socket(cluster_of, how):
    watched = Watched(cluster_of(2, *SETTINGS))
    visit(watched.victim, how, watched.victim.socket)
    watched.expect_unimpressed("socket")
    if how in ("garbage", "zeros"):
        until(lambda: rejected(watched.victim)["client"] > watched.rejected["client"], "it counts")
        assert "a client was dropped" in watched.victim.log()
    watched.end()


def test_what_strangers_did_is_on_the_metrics_page(cluster_of):
    cluster = cluster_of(2, *SETTINGS)
    node, stranger = cluster.nodes
    visit(stranger, "garbage", node.address, str(CONTROL_PORT))
    visit(node, "garbage", node.socket)
    until(lambda: rejected(node)["control"] > 0 and rejected(node)["client"] > 0, "both count")
    page = node.run("curl", "-sf", f"http://{node.address}:{METRICS_PORT}/metrics")
    for door in ("control", "client"):
        line = next(
            line for line in page.splitlines()
            if line.startswith("braid_rejected_connections_total{") and f'"{door}"' in line
        )  # fmt: skip
        assert float(line.split()[-1]) > 0, line
