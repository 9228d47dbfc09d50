# SPDX-License-Identifier: Apache-2.0
"""`braidctl --host`: what a daemon's page tells, read from another node, and what it does not tell."""

import json
import pathlib
import re

import pytest
from braid_build import BRAIDCTL, ran
from real_cluster import Cluster, Node, end_running, needs_daemons, wait_until_running

pytestmark = [needs_daemons, pytest.mark.sanitized]

TOKEN = "0123456789abcdef0123456789abcdef"
# Planned tensors, step after step.
TRAINING = """
job = open_job()
tensors = job.register([TensorSpec("weight", DType.FLOAT32, 100_000, backward_order=0, planned=True)])
data = np.ones(100_000, np.float32)
step = 0
while True:
    ended(job, job.submit(tensors[0], step, data))
    step += 1
    if step == 20:
        print("RUNNING", flush=True)
"""


@pytest.fixture(scope="module")
def token_file(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("token") / "page.token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def cluster(cluster_of, token_file) -> Cluster:
    return cluster_of(2, f"page.access={token_file}", "metrics.address=0.0.0.0")


def asked(on: Node, *arguments: str, environment: dict | None = None):
    """braidctl on one node, which has no daemon's socket to fall back on."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "BRAID_SOCKET": "/none", **(environment or {})}
    return ran(on.enter([BRAIDCTL, *arguments]), env=environment)


def test_what_the_page_tells_comes_as_from_the_socket(cluster, token_file):
    here, there = cluster.nodes
    trainers = cluster.start(TRAINING, job="over/there")
    wait_until_running(trainers)
    way = ("--host", there.address, "--token-file", str(token_file))

    status = json.loads(asked(here, *way, "status", "--json").stdout)
    assert status["node"]["name"] == there.name
    assert "over/there" in asked(here, *way, "status").stdout
    assert re.search(r"^over/there +2 +2 ", asked(here, *way, "jobs").stdout, re.M)
    for command in ("explain", "pending", "plan"):
        done = asked(here, *way, command, "--job", "over/there")
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout
    assert there.address not in asked(here, *way, "flows").stderr
    # With the port, and with the token from the environment.
    done = asked(here, "status", "--host", f"{there.address}:9431", environment={"BRAID_PAGE_TOKEN": TOKEN})
    assert done.returncode == 0, done.stderr
    end_running(trainers)


def test_no_such_job_is_said_as_the_socket_says_it(cluster, token_file):
    here, there = cluster.nodes
    way = ("--host", there.address, "--token-file", str(token_file))
    for command in ("explain", "pending", "plan"):
        done = asked(here, *way, command, "--job", "none")
        assert done.returncode == 1 and "none" in done.stderr and not done.stdout, command


def test_what_the_page_does_not_tell_is_said_in_a_sentence(cluster, token_file):
    here, there = cluster.nodes
    for command in (["trace", "--job", "x"], ["tune"], ["report"], ["check", "--peer", "x"]):
        done = asked(here, "--host", there.address, "--token-file", str(token_file), *command)
        assert done.returncode == 1 and done.stdout == "", command
        assert f"ssh {there.address} braidctl {command[0]}" in done.stderr and done.stderr.count("\n") == 1


def test_a_token_that_is_missing_or_wrong(cluster, tmp_path):
    here, there = cluster.nodes
    done = asked(here, "--host", there.address, "status")
    assert done.returncode == 1 and "asks for its token" in done.stderr and "--token-file" in done.stderr
    wrong = {"BRAID_PAGE_TOKEN": "0" * 32}
    done = asked(here, "--host", there.address, "status", environment=wrong)
    assert done.returncode == 1 and "does not take this token" in done.stderr
    assert "0" * 32 not in done.stderr
    done = asked(here, "--host", there.address, "status", environment={"BRAID_PAGE_TOKEN": "a b"})
    assert done.returncode == 1 and "$BRAID_PAGE_TOKEN" in done.stderr
    none = tmp_path / "none"
    done = asked(here, "--host", there.address, "--token-file", str(none), "status")
    assert done.returncode == 1 and str(none) in done.stderr
    open_to_all = tmp_path / "open"
    open_to_all.write_text(TOKEN)
    open_to_all.chmod(0o644)
    done = asked(here, "--host", there.address, "--token-file", str(open_to_all), "status")
    assert done.returncode == 1 and "--token-file" in done.stderr and "chmod 600" in done.stderr


def test_where_no_page_is(cluster):
    here, there = cluster.nodes
    done = asked(here, "--host", f"{there.address}:9", "status")
    assert done.returncode == 1
    assert f"nothing answers at {there.address}:9" in done.stderr and "metrics.port" in done.stderr
    done = asked(here, "--host", f"{there.address}:7410", "status")
    assert done.returncode == 1 and "7410" in done.stderr, "a port of braidd that speaks no HTTP"
    done = asked(here, "--host", "nobody.invalid", "status")
    assert done.returncode == 1 and "nobody.invalid" in done.stderr
    for arguments in (("--host", "a b", "status"), ("--host", "x", "--socket", "/y", "status")):
        assert asked(here, *arguments).returncode == 2
