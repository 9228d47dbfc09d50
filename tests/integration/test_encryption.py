# SPDX-License-Identifier: Apache-2.0
"""transport.encryption: sums stay right, nobody on the wire reads or changes them, and nodes must agree about it."""

import contextlib
import json
import pathlib
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest
from braid_build import BRAIDD, PATIENCE_S, braidctl, ran
from real_cluster import ALL_FLOWS, Cluster, Node, expect_to_go_on, needs_daemons, until, wait_until_running
from silent_network import skip_without_packet_filter

pytestmark = [needs_daemons, pytest.mark.sanitized]

FOLDER = pathlib.Path(__file__).resolve().parent
NATIVE = "transport.tcp=native"
ON = (NATIVE, "transport.encryption=on")
EACH = pytest.mark.parametrize("encryption", ["on", "off"])
FLOWS_PORT, PROXY_PORT = 7420, 7990
VALUE = 1234.5678  # of each element on the wire
# ARGUMENT: the tensors' sizes. Each rank gives VALUE in each element.
ADD = f"""
with open_job() as job:
    tensors = job.register([TensorSpec(f"w{{n}}", DType.FLOAT32, n) for n in ARGUMENT])
    good = True
    for step in range(5):
        for tensor, count in zip(tensors, ARGUMENT):
            mine = np.full(count, {VALUE}, np.float32)
            got = np.frombuffer(ended(job, job.submit(tensor, step, mine)), np.float32)
            good &= np.array_equal(got, WORLD * mine)
    report(good=good)
"""
SIZES = [3, 1000, 100_000, 2_500_000]
OPEN = "open_job(timeout=ARGUMENT)"
IN_VAIN_S = 5  # for the rank whose peer does not come


@contextlib.contextmanager
def helper(node: Node, script: str, *arguments: str) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(
        node.enter([sys.executable, str(FOLDER / script), *arguments]),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "READY\n"
        yield process
    finally:
        process.kill()
        process.wait()


def last_word(process: subprocess.Popen) -> str:
    return process.communicate(timeout=PATIENCE_S)[0]


def elements(value: float) -> str:
    return (struct.pack("<f", value) * 16).hex()


def add(cluster: Cluster, job: str | None = None) -> None:
    for trainer in cluster.start(ADD, argument=SIZES, job=job):
        assert trainer.result()["good"]


def test_three_nodes_add_up(cluster_of):
    cluster = cluster_of(3, *ON)
    add(cluster)
    assert "encrypted" in cluster.nodes[0].status()["transport"]
    cluster.expect_healthy()


@EACH
def test_who_listens_reads_nothing(cluster_of, encryption):
    cluster = cluster_of(2, NATIVE, f"transport.encryption={encryption}")
    node = cluster.nodes[0]
    job = f"listened-to-{encryption}"
    wanted = [f"input={elements(VALUE)}", f"sum={elements(2 * VALUE)}", f"job={job.encode().hex()}"]
    with helper(node, "wire_tap.py", node.interface, *wanted) as tap:
        add(cluster, job)
        heard = json.loads(last_word(tap))
    assert heard["bytes"] > 4 * SIZES[-1], heard
    found = {name: heard[name] > 0 for name in ("input", "sum", "job")}
    assert found == dict.fromkeys(found, encryption == "off"), heard


def restart_with(node: Node, *settings: str) -> None:
    node.signal(signal.SIGKILL)
    for setting in settings:
        node.daemon_command += ["--set", setting]
    node.restart()


@pytest.mark.parametrize("encrypting", [0, 1])
def test_nodes_that_disagree_refuse_each_other_by_name(encrypting):
    with Cluster(2, (NATIVE,)) as cluster:
        restart_with(cluster.nodes[encrypting], "transport.encryption=on")
        here, there = cluster.nodes
        trainers = cluster.start(OPEN, argument=IN_VAIN_S)
        text = trainers[1].error()["text"]
        for words in ("transport.encryption", "set the same on all nodes"):
            assert words in text, text
        for place, node in enumerate(cluster.nodes):
            setting = "on" if place == encrypting else "off"
            assert f"{setting} on node '{node.name}' ({node.address})" in text, text
        assert "transport.encryption is" in here.log()
        trainers[0].error()
        checked = braidctl(here.socket, "check", "--peer", there.address)
        assert checked.returncode == 1 and "transport.encryption is" in checked.stdout, checked.stdout
        restart_with(there if encrypting == 0 else here, "transport.encryption=on")
        cluster.expect_healthy()


@contextlib.contextmanager
def changed_on_the_way(node: Node, every: int) -> Iterator[subprocess.Popen]:
    """Some of the bytes that others send to the node's flows."""
    rule = f"PREROUTING -p tcp --dport {FLOWS_PORT} -j REDIRECT --to-ports {PROXY_PORT}".split()
    with helper(node, "changing_proxy.py", str(PROXY_PORT), str(every)) as proxy:
        node.run("iptables", "-w", "-t", "nat", "-A", *rule)
        yield proxy


@EACH
def test_who_changes_bytes_changes_no_sum(encryption):
    settings = (NATIVE, f"transport.encryption={encryption}", f"transport.port={FLOWS_PORT}",
                "transport.io_threads=1", "transport.flows_per_link=4", ALL_FLOWS,
                "debug.slow_flow_percent=0")  # fmt: skip
    with Cluster(2, settings) as cluster:
        victim, sender = cluster.nodes
        skip_without_packet_filter(victim)
        with changed_on_the_way(victim, 3_000_003) as proxy:
            trainers = cluster.start("sum_forever(open_job(), count=1_000_000)")
            wait_until_running(trainers)
            if encryption == "off":
                # What encryption is for: else the sum is wrong.
                until(lambda: any(trainer.process.poll() is not None for trainer in trainers), "a sum is wrong")
                assert any('"wrong"' in trainer.output() for trainer in trainers)
                return
            failures = "braid_flow_failures_total"
            until(lambda: sender.counter(failures) >= 3, "flows with changed bytes end")
            expect_to_go_on(trainers)
            assert int(last_word(proxy)) >= 3


def test_what_cannot_be_encrypted_is_refused(tmp_path):
    key = tmp_path / "cluster.key"
    key.write_text("0123456789abcdef0123456789abcdef")
    key.chmod(0o600)
    with_key = ["--set", f"control.cluster_key_file={key}"]
    for settings, blamed in (
        ([], "control.cluster_key_file"),
        ([*with_key, "--set", "transport.tcp=ucx"], "transport.tcp"),
        ([*with_key, "--set", "transport.transports=rc"], "transport.transports"),
    ):
        check = [BRAIDD, "--config", "/dev/null", "--check-config"]
        done = ran([*check, "--set", "transport.encryption=on", *settings])
        assert done.returncode != 0
        assert "transport.encryption" in done.stderr + done.stdout
        assert blamed in done.stderr + done.stdout
