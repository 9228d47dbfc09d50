# SPDX-License-Identifier: Apache-2.0
"""scripts/cluster: what a rank gets, what the caller gets, what the network does."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
from braid_build import ran
from cluster_tool import (
    CLUSTER,
    EXIT_TOOL_FAILED,
    Running,
    both_modes,
    by_rank,
    cluster,
    is_running,
    needs_namespaces,
    python,
    without_namespaces,
)

PRINT_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"
# Rank 0 sends to rank 1, then prints what the classes of its NIC have sent.
TRANSFER = """
import json, os, socket, subprocess, time
with open(os.environ["BRAID_CLUSTER_DIR"] + "/cluster.json") as file:
    address = json.load(file)["nodes"][1]["address"]
port, size = int(os.environ["MASTER_PORT"]), 4 << 20
if os.environ["RANK"] == "1":
    with socket.create_server((address, port)) as server:
        server.settimeout(30)
        peer, _ = server.accept()
        got = 0
        while data := peer.recv(1 << 20):
            got += len(data)
        assert got == size
        peer.close()
else:
    for attempt in range(300):
        try:
            peer = socket.create_connection((address, port))
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    peer.sendall(bytes(size))
    peer.shutdown(socket.SHUT_WR)
    assert peer.recv(1) == b""  # it has everything
    print(subprocess.check_output(["tc", "-s", "class", "show", "dev", "eth0"], text=True))
"""


@both_modes
def test_every_rank_gets_its_place_and_the_common_variables(mode):
    done = cluster("--nodes", "2", "--ranks-per-node", "2", *mode, *python(PRINT_ENVIRONMENT))
    assert done.returncode == 0, done.stderr
    env = {rank: json.loads(lines[0]) for rank, lines in by_rank(done.stdout).items()}
    assert sorted(env) == [0, 1, 2, 3]
    for rank, own in env.items():
        assert (own["RANK"], own["WORLD_SIZE"]) == (str(rank), "4")
        assert (own["LOCAL_RANK"], own["LOCAL_WORLD_SIZE"]) == (str(rank % 2), "2")
        assert own["NODE_RANK"] == str(rank // 2)
        assert own["GLOO_SOCKET_IFNAME"] == ("lo" if mode else "eth0")
        assert own["OMP_NUM_THREADS"] == os.environ.get("OMP_NUM_THREADS", "1")
        assert own["BRAID_SOCKET"].startswith(own["BRAID_CLUSTER_DIR"])
        for common in ("MASTER_ADDR", "MASTER_PORT", "BRAID_JOB", "BRAID_CLUSTER_DIR"):
            assert own[common] == env[0][common]
    sockets = [env[rank]["BRAID_SOCKET"] for rank in range(4)]
    assert sockets[0] == sockets[1] != sockets[2] == sockets[3]
    assert not pathlib.Path(env[0]["BRAID_CLUSTER_DIR"]).exists()


@needs_namespaces
def test_nodes_may_have_ipv6_alone():
    show = "import json, os; print(os.popen('ip -j address').read().strip(), os.environ['MASTER_ADDR'])"
    done = cluster("--nodes", "2", "--ipv6", *python(show))
    assert done.returncode == 0, done.stderr
    for rank, lines in by_rank(done.stdout).items():
        shown, _, master = lines[0].rpartition(" ")
        own = {info["local"] for link in json.loads(shown) for info in link["addr_info"]}
        assert {one for one in own if ":" not in one} == {"127.0.0.1"}
        assert f"{master.removesuffix('::1')}::{rank + 1}" in own, (own, master)


def test_ipv6_where_it_cannot_be_had_is_refused():
    for option in (["--loopback"], ["--flow-mbit", "500"]):
        done = cluster("--ipv6", *option, *python("pass"))
        assert done.returncode == 2 and "--ipv6" in done.stderr and option[0] in done.stderr, done.stderr


@both_modes
@pytest.mark.parametrize(
    ("script", "expected", "said"),
    [
        ("exit 0", 0, []),
        ("exit $((3 * RANK))", 6, ["rank 1: exit code 3", "rank 2: exit code 6"]),
        (
            "[ $RANK != 1 ] || kill -9 $$; exit $RANK",
            128 + signal.SIGKILL,
            ["rank 1: killed by SIGKILL", "rank 2: exit code 2"],
        ),
    ],
)
def test_the_worst_exit_code_wins_and_every_bad_end_is_told(mode, script, expected, said):
    done = cluster("--nodes", "3", *mode, "--", "sh", "-c", script)
    assert done.returncode == expected
    about_ranks = [line for line in done.stderr.splitlines() if line.startswith("cluster: rank ")]
    assert about_ranks == [f"cluster: {line}" for line in said]


@both_modes
def test_a_timeout_stops_every_rank(mode):
    # Long enough for all of them to say who they are.
    done = cluster("--timeout", "4", *mode, "--", "sh", "-c", "echo $$; exec sleep 600")
    assert done.returncode == 124
    pids = [int(lines[0]) for lines in by_rank(done.stdout).values()]
    assert len(pids) == 2 and not any(is_running(pid) for pid in pids)


@needs_namespaces
@pytest.mark.parametrize(
    ("arguments", "ceil"),
    [(["--nic-mbit", "2000", "--flow-mbit", "20"], "20Mbit"), (["--nic-mbit", "2000"], "2Gbit")],
    ids=["capped", "uncapped"],
)
def test_a_flow_is_sent_by_a_class_with_its_cap(arguments, ceil):
    done = cluster(*arguments, *python(TRANSFER))
    assert done.returncode == 0, done.stderr
    # "class htb 1:1f3a parent 1:1 leaf … ceil 20Mbit …", then " Sent 4362870 bytes … overlimits 83 …"
    leaves = re.findall(
        r"class htb 1:\w+ parent 1:1 .*?ceil (\w+) .*?Sent (\d+) bytes.*?overlimits (\d+)",
        "\n".join(by_rank(done.stdout)[0]), re.S,
    )  # fmt: skip
    [(found, _, waits)] = [leaf for leaf in leaves if int(leaf[1]) > 4 << 20]
    assert found == ceil
    if ceil == "20Mbit":
        assert int(waits) > 0, "the cap has held nothing back"


@needs_namespaces
def test_caps_change_while_the_cluster_runs():
    with Running() as running:
        for caps in (["--nic-mbit", "800", "--flow-mbit", "70,30"], ["--flow-mbit", "50"]):
            subprocess.run([CLUSTER, "--set-caps", str(running.directory), *caps], check=True)
        for node in running.state["nodes"]:
            show = ["tc", "-n", node["namespace"], "class", "show", "dev", node["interface"]]
            classes = subprocess.run(show, capture_output=True, text=True, check=True).stdout
            flows = [line for line in classes.splitlines() if " htb 1:1" in line and "leaf" in line]
            assert len(flows) > 64 and all("ceil 50Mbit" in line for line in flows)
            assert "rate 800Mbit" in classes


@needs_namespaces
def test_a_daemon_that_does_not_start_is_an_error_with_its_exit_code():
    done = ran([CLUSTER, "--daemon", shutil.which("false"), "--", "echo", "ran"])
    assert done.returncode == EXIT_TOOL_FAILED
    assert "braidd of node" in done.stderr and "exit code 1" in done.stderr
    assert "ran" not in done.stdout


def test_without_permission_it_falls_back_to_loopback_and_says_so():
    done = cluster(*python(PRINT_ENVIRONMENT), prefix=without_namespaces())
    assert done.returncode == 0, done.stderr
    assert "not allowed" in done.stderr
    assert json.loads(by_rank(done.stdout)[0][0])["GLOO_SOCKET_IFNAME"] == "lo"


def test_shaping_without_permission_is_an_error():
    done = cluster("--flow-mbit", "100", "--", "echo", "ran", prefix=without_namespaces())
    assert done.returncode == EXIT_TOOL_FAILED
    assert "CAP_SYS_ADMIN" in done.stderr and "ran" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "COMMAND is missing"),
        (["--nodes", "0", "--", "true"], "--nodes"),
        (["--flow-mbit", "fast", "--", "true"], "'fast'"),
        (["--set", "novalue", "--", "true"], "KEY=VALUE"),
        (["--loopback", "--nic-mbit", "100", "--", "true"], "--loopback cannot shape"),
    ],
)
def test_bad_arguments_are_explained(arguments, complaint):
    done = cluster(*arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
