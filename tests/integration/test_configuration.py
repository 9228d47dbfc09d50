# SPDX-License-Identifier: Apache-2.0
"""What an operator is told whose configuration is right in itself, and does not fit the machine."""

import subprocess

import pytest
from braid_build import BRAIDD, ran
from real_cluster import needs_daemons

pytestmark = needs_daemons

ELSEWHERE = "203.0.113.9"


def braidd(tmp_path, *settings: str, check: str | None = None) -> subprocess.CompletedProcess:
    argv = [BRAIDD, "--config", "/dev/null", *([check] if check else [])]
    for setting in (f"client.socket={tmp_path}/s", "client.group=", "transport.rails=lo", "metrics.port=0", *settings):
        argv += ["--set", setting]
    return ran(argv)


def cluster_key(tmp_path) -> str:
    key = tmp_path / "cluster.key"
    key.touch(mode=0o600)
    key.write_text("0123456789abcdef" * 4)
    return f"control.cluster_key_file={key}"


def test_what_a_node_has_is_good(tmp_path):
    for check in ("--check-config", "--check-node"):
        done = braidd(tmp_path, cluster_key(tmp_path), check=check)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert "/dev/null: good" in done.stdout and "Not checked: whether ports" in done.stdout


@pytest.mark.parametrize("setting, told", [
    ("control.cluster_key_file=/nowhere/a.key", "control.cluster_key_file: /nowhere/a.key: there is no such file"),
    ("client.group=no-such-group", "client.group: the group 'no-such-group' does not exist"),
    ("transport.rails=eth77", "transport.rails: there is no interface 'eth77'; the interfaces are: "),
    ("transport.transports=[rdma]", "transport.transports: UCX "),
    (f"node.address={ELSEWHERE}", f"node.address: {ELSEWHERE} is no address of this machine"),
])
def test_what_a_machine_lacks_is_told_and_is_an_error_of_the_node_alone(tmp_path, setting, told):
    settings = [cluster_key(tmp_path), setting]
    anywhere = braidd(tmp_path, *settings, check="--check-config")
    assert (anywhere.returncode, told in anywhere.stderr) == (0, True), anywhere.stderr
    assert "/dev/null: good" in anywhere.stdout
    assert "on this machine braidd would not start with it" in anywhere.stderr
    node = braidd(tmp_path, *settings, check="--check-node")
    assert (node.returncode, told in node.stderr) == (1, True), node.stderr


def test_a_configuration_that_is_wrong_anywhere_is_an_error_of_both(tmp_path):
    for check in ("--check-config", "--check-node"):
        done = braidd(tmp_path, "rail=eth0", check=check)
        assert done.returncode == 2
        assert done.stderr == "--set rail: unknown key; did you mean 'transport.rails'?\n"


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
