# SPDX-License-Identifier: Apache-2.0
"""What an operator is told whose configuration is right in itself, and does not fit the machine."""

import os
import socket
import subprocess

import pytest
from braid_build import BRAIDD, ran
from real_cluster import needs_daemons
from single_daemon import SingleDaemon, free_port

pytestmark = needs_daemons

ELSEWHERE = "203.0.113.9"


def braidd(tmp_path, *settings: str, check: bool = False, **environment: str) -> subprocess.CompletedProcess:
    argv = [BRAIDD, "--config", "/dev/null", *(["--check-config"] if check else [])]
    for setting in (f"client.socket={tmp_path}/s", "client.group=", "transport.rails=lo", "metrics.port=0", *settings):
        argv += ["--set", setting]
    return ran(argv, env={**os.environ, **environment})


def cluster_key(tmp_path) -> str:
    key = tmp_path / "cluster.key"
    key.touch(mode=0o600)
    key.write_text("0123456789abcdef" * 4)
    return f"control.cluster_key_file={key}"


def test_what_a_node_has_is_good(tmp_path):
    done = braidd(tmp_path, cluster_key(tmp_path), f"control.port={free_port()}", check=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "/dev/null: good" in done.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "cluster.key"], "nothing is left behind"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("check", [True, False])
def test_a_port_of_flows_that_is_taken_is_told_before_a_start_and_at_it(tmp_path, address, check):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as taken:
        taken.bind((address, 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = (f"node.address={address}", "control.port=auto", f"transport.port={port}")
        done = braidd(tmp_path, *settings, cluster_key(tmp_path), check=check)
    told = (
        f"transport.port: {port} is taken at {address}; stop what listens there (ss -ltnp 'sport = :{port}' names it), "
        "or use another port"
    )
    assert (done.returncode, told in done.stderr) == (1, True), done.stderr
    assert ("braidd cannot start: " + told in done.stderr) is not check


def test_the_ports_of_all_io_threads_are_tried(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = ("node.address=127.0.0.1", "control.port=auto", f"transport.port={port - 2}")
        three = braidd(tmp_path, *settings, "transport.io_threads=3", cluster_key(tmp_path), check=True)
        two = braidd(tmp_path, *settings, "transport.io_threads=2", cluster_key(tmp_path), check=True)
    told = f"--set transport.port: {port} is taken at 127.0.0.1"
    assert told in three.stderr and told not in two.stderr, three.stderr + two.stderr


def test_ports_of_flows_of_a_daemon_that_runs_are_no_mistake(tmp_path):
    with SingleDaemon(f"transport.port={free_port()}", cluster_key(tmp_path)) as daemon:
        done = ran([*daemon.process.args, "--check-config"])
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        elsewhere = ran([*daemon.process.args, "--check-config", "--set", f"client.socket={tmp_path}/s"])
        assert elsewhere.returncode == 1 and "--set transport.port: " in elsewhere.stderr, elsewhere.stderr


def test_flows_do_not_take_the_port_between_daemons(tmp_path):
    port = free_port()
    settings = ("node.address=127.0.0.1", f"control.port={port}", f"transport.port={port}", cluster_key(tmp_path))
    done = braidd(tmp_path, *settings, check=True)
    told = f"--set transport.port: {port} is taken at 127.0.0.1"
    assert (done.returncode, told in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("setting, told", [
    ("control.cluster_key_file=/nowhere/a.key", "control.cluster_key_file: /nowhere/a.key: there is no such file"),
    ("page.access=/nowhere/a.token", "page.access: /nowhere/a.token: there is no such file"),
    ("client.group=no-such-group", "client.group: the group 'no-such-group' does not exist"),
    ("client.socket=/nowhere/at/all.sock", "client.socket: the folder /nowhere/at is not there"),
    ("transport.rails=eth77", "transport.rails: there is no interface 'eth77'; the interfaces are: "),
    ("transport.transports=[rdma]", "transport.transports: UCX "),
    (f"node.address={ELSEWHERE}", f"node.address: {ELSEWHERE} is no address of this machine"),
])
def test_what_a_machine_lacks_is_told_with_its_place(tmp_path, setting, told):
    done = braidd(tmp_path, cluster_key(tmp_path), f"control.port={free_port()}", setting, check=True)
    assert (done.returncode, f"--set {told}" in done.stderr) == (1, True), done.stderr
    assert "braidd would not start with it" in done.stdout and "good" not in done.stdout


def test_all_that_a_machine_lacks_is_told_at_once(tmp_path):
    key = tmp_path / "open.key"
    key.write_text("0123456789abcdef" * 4)
    key.chmod(0o644)
    file = tmp_path / "braidd.yaml"
    file.write_text(
        f"control:\n  cluster_key_file: {key}\nclient:\n  group: ''\n  socket: {tmp_path}/s\n"
        "transport:\n  rails: [eth77, lo, eth78]\n"
    )
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = ran([BRAIDD, "--check-config", "--config", file], env={**os.environ, "BRAIDD_METRICS_PORT": str(port)})
    assert done.returncode == 1
    told = done.stderr.splitlines()
    assert told[0].startswith(f"{file}:2: control.cluster_key_file: {key}: others than its owner may use it (mode ")
    assert told[1].startswith(f"{file}:7: transport.rails: there is no interface 'eth77'")
    assert told[2].startswith(f"{file}:7: transport.rails: there is no interface 'eth78'")
    assert told[3].startswith(f"environment BRAIDD_METRICS_PORT: {port} is taken at 127.0.0.1")
    assert len(told) == 4


def test_a_configuration_that_is_wrong_anywhere_is_another_error(tmp_path):
    done = braidd(tmp_path, "rail=eth0", check=True)
    assert done.returncode == 2
    assert done.stderr == "--set rail: unknown key; did you mean 'transport.rails'?\n"
    both = braidd(tmp_path, "rail=eth0", "client.group=no-such-group", check=True)
    assert both.returncode == 2
    assert "--set rail: unknown key" in both.stderr and "--set client.group: the group" in both.stderr


@pytest.mark.parametrize("check", [True, False])
def test_an_environment_name_that_sets_no_key_is_named(tmp_path, check):
    done = braidd(tmp_path, check=check, BRAIDD_LOG_LEVL="debug", BRAIDD_LOG_FORMAT="xml")
    assert done.returncode == 2
    assert "environment BRAIDD_LOG_LEVL: sets no key; did you mean BRAIDD_LOG_LEVEL?\n" in done.stderr
    assert "environment BRAIDD_LOG_FORMAT: 'xml' is no log format; use auto, text or json\n" in done.stderr


def test_transports_that_are_not_there_are_named_with_those_that_are(tmp_path):
    done = braidd(tmp_path, "transport.transports=[rdma]")
    assert done.returncode == 1
    told = done.stderr.splitlines()[-1]
    assert "braidd cannot start: transport.transports: " in told and "for 'rdma'" in told
    assert " tcp; use one of these" in told


def test_an_address_of_another_machine_says_which_there_are(tmp_path):
    done = braidd(tmp_path, cluster_key(tmp_path), f"node.address={ELSEWHERE}")
    assert done.returncode == 1
    assert f"cannot listen at {ELSEWHERE}:" in done.stderr
    assert "that is no address of this machine, which has " in done.stderr
    assert "set node.address" in done.stderr and "or to auto" in done.stderr
