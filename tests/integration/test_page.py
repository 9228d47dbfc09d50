# SPDX-License-Identifier: Apache-2.0
"""The daemon's HTTP port on real daemons: health, the page's data, who may read it, and who asks badly."""

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import urllib.parse

import pytest
from braid_build import BRAIDD, IS_SANITIZED, PATIENCE_S, braidctl, ran
from page_fixture import HOSTILE
from real_cluster import SUM_FOREVER, Node, end_running, needs_daemons, until, wait_until_running
from second_user import GROUP_SETTING, NOBODY, needs_nobody, start_neighbour, way_opened
from test_operations import Alone

pytestmark = [needs_daemons, pytest.mark.sanitized]

THREADS = 8  # WebServer::kThreads
TOKEN = "0123456789abcdef-page-token"
# Steps of planned tensors until the job is ended.
PLANNED = """
import itertools
job = open_job()
counts = [1000, 2000, 3000]
handles = job.register([TensorSpec(f"layer{i}", DType.FLOAT32, c, backward_order=i, planned=True)
                        for i, c in enumerate(counts)])
for step in itertools.count():
    tickets = [job.submit(h, step, np.ones(c, np.float32)) for h, c in zip(handles, counts)]
    for ticket in tickets:
        ended(job, ticket)
    time.sleep(0.02)
    if step == 12:
        say("RUNNING")
"""


def ask(daemon: Alone, path: str, method: str = "GET", **headers: str) -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", daemon.ports[1], timeout=PATIENCE_S)
    with contextlib.closing(connection):
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        return reply.status, reply.read().decode(), reply.headers


def curl(node: Node, path: str, *more: str, of: Node | None = None) -> tuple[int, str]:
    """Asked in the node's namespace, of the node's own daemon or another one's."""
    url = f"http://{(of or node).address}:9431{path}"
    said = node.run("curl", "-s", "--path-as-is", "-w", "\n%{http_code}", *more, url)
    body, _, status = said.rpartition("\n")
    return int(status), body


def jobs_on(node: Node) -> dict[str, dict]:
    """By name, as the page is told; up to a second old."""
    return {job["name"]: job for job in json.loads(curl(node, "/api/status")[1])["jobs"]}


def job_path(job: str, what: str) -> str:
    return f"/api/jobs/{urllib.parse.quote(job, safe='')}/{what}"


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    with Alone(tmp_path_factory.mktemp("alone")) as daemon:
        yield daemon


def test_every_path_answers(alone):
    listed = ask(alone, "/nowhere")
    assert listed[0] == 404
    paths = listed[1].split("These are there:\n")[1].split()
    assert {"/", "/metrics", "/healthz", "/readyz", "/api/status", "/page.js"} <= set(paths)
    for path in paths:
        if "NAME" in path:
            status, text, _ = ask(alone, path.replace("NAME", "nobody"))
            assert status == 404 and "runs on this node" in text, (path, text)
        else:
            assert ask(alone, path)[0] == 200, path
    assert ask(alone, "/healthz")[1] == "ok\n" and ask(alone, "/readyz")[1] == "ready\n"


def test_the_page_is_whole_and_asks_for_nothing_from_elsewhere(alone):
    status, text, headers = ask(alone, "/")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    for reference in re.findall(r'(?:src|href)="(/[^"]+)"', text):
        assert ask(alone, reference)[0] == 200, reference
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert "<noscript>" in text and "braidctl" in text


def test_it_only_reads(alone):
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        status, text, headers = ask(alone, "/api/status", method)
        assert status == 405 and headers["Allow"] == "GET, HEAD", (method, text)
    status, text, headers = ask(alone, "/api/status", "HEAD")
    assert (status, text) == (200, "") and int(headers["Content-Length"]) > 0


def test_the_status_is_that_of_braidctl(alone):
    told = json.loads(ask(alone, "/api/status")[1])
    asked = json.loads(braidctl(alone.socket, "status", "--json").stdout)
    assert set(told) == set(asked)
    for name in ("version", "node", "transport", "rails"):
        assert told[name] == asked[name]
    assert told["processor"]["seconds"] > 0


def test_a_site_that_takes_this_address_learns_nothing(alone):
    for host in ("evil.example", "evil.example:9431", ""):
        status, text, _ = ask(alone, "/api/status", Host=host)
        assert status == 403 and "http://localhost:" in text
        assert ask(alone, "/", Host=host)[0] == 403
        assert ask(alone, "/healthz", Host=host)[0] == 200
    for host in ("localhost", f"127.0.0.1:{alone.ports[1]}", "alone"):
        assert ask(alone, "/api/status", Host=host)[0] == 200


def test_off_leaves_health_and_metrics(tmp_path):
    with Alone(tmp_path) as daemon:
        daemon.process.terminate()
        daemon.process.wait(PATIENCE_S)
        daemon.log_path.write_text("")
        daemon.write("info", "page:\n  access: off\n")
        daemon.start()
        assert "the page is off" in ask(daemon, "/")[1]
        for path in ("/page.js", "/api/status", job_path("a", "steps")):
            assert ask(daemon, path)[0] == 404
        assert ask(daemon, "/healthz")[0] == 200 and "braid_jobs" in ask(daemon, "/metrics")[1]


def test_sighup_takes_who_may_read_it(tmp_path):
    file = tmp_path / "reloaded.token"
    file.touch(mode=0o600)

    def reload(daemon: Alone, access: str, said: str) -> None:
        before = daemon.log().count(said)
        daemon.write("info", f"page:\n  access: {access}\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: daemon.log().count(said) > before, said)

    def status(daemon: Alone, **headers: str) -> int:
        return ask(daemon, "/api/status", **headers)[0]

    with Alone(tmp_path) as daemon:
        assert status(daemon) == 200
        reload(daemon, "off", "page.access: loopback → off")
        until(lambda: status(daemon) == 404, "the page is off")
        assert "the page is off" in ask(daemon, "/")[1] and ask(daemon, "/healthz")[0] == 200
        file.write_text("short")
        reload(daemon, str(file), "page.access: " + f"{file}: has 5 bytes")
        assert "nothing was changed" in daemon.log() and status(daemon) == 404
        file.write_text(TOKEN)
        reload(daemon, str(file), f"page.access: off → {file}")
        until(lambda: status(daemon, Authorization=f"Bearer {TOKEN}") == 200, "the token is taken")
        assert status(daemon) == 401
        file.write_text(TOKEN[::-1])
        reload(daemon, str(file), "the configuration has not changed")
        until(lambda: status(daemon, Authorization=f"Bearer {TOKEN[::-1]}") == 200, "so is the next one")
        assert status(daemon, Authorization=f"Bearer {TOKEN}") == 401


@pytest.fixture
def with_token(tmp_path):
    file = tmp_path / "page.token"
    file.touch(mode=0o600)
    file.write_text(TOKEN + "\n")
    with Alone(tmp_path) as daemon:
        daemon.process.terminate()
        daemon.process.wait(PATIENCE_S)
        daemon.log_path.write_text("")
        daemon.write("info", f"page:\n  access: {file}\n")
        daemon.start()
        yield daemon


def test_a_token_opens_the_data(with_token):
    assert ask(with_token, "/")[0] == 200  # the page asks for the token
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
        status, text, answered = ask(with_token, "/api/status", **headers)
        assert status == 401 and answered["WWW-Authenticate"] == "Bearer" and TOKEN not in text
    right = {"Authorization": f"Bearer {TOKEN}"}
    assert ask(with_token, "/api/status", **right)[0] == 200
    assert ask(with_token, "/api/status", Host="any.example", **right)[0] == 200
    assert ask(with_token, "/healthz")[0] == 200 and ask(with_token, "/metrics")[0] == 200


def test_a_token_that_is_no_secret_keeps_it_from_starting(tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o644)
    settings = {"client.socket": f"{tmp_path}/s", "client.group": "", "transport.rails": "[lo]",
                "control.port": "17400", "metrics.port": "17401"}  # fmt: skip

    def error_with(**more: str) -> str:
        given = {**settings, **{name.replace("__", "."): value for name, value in more.items()}}
        argv = [part for key, value in given.items() for part in ("--set", f"{key}={value}")]
        done = ran([BRAIDD, *argv])
        assert done.returncode != 0
        return done.stderr

    path = str(file)
    assert f"page.access: {path}: others than its owner may use it" in error_with(page__access=path)
    file.chmod(0o600)
    file.write_text("short")
    assert "has 5 bytes; use 16 or more" in error_with(page__access=path)
    file.write_text("sixteen bytes and blanks")
    assert "other characters than letters" in error_with(page__access=path)
    assert "there is no such file; make one with" in error_with(page__access=f"{tmp_path}/nothing")


@pytest.mark.plain
def test_who_stops_in_the_middle_holds_up_nobody_for_long(alone):
    stuck = []
    try:
        for i in range(3 * THREADS):
            one = socket.create_connection(("127.0.0.1", alone.ports[1]), PATIENCE_S)
            one.sendall(b"GET /api/status HTTP/1.1\r\nHost: localhost\r\nX: " if i % 2 else b"")
            stuck.append(one)
        # Neither is the control loop held up, nor, after a while, anybody else who asks.
        assert braidctl(alone.socket, "status").returncode == 0
        assert ask(alone, "/healthz")[:2] == (200, "ok\n")
    finally:
        for one in stuck:
            one.close()


def test_what_is_no_request_is_refused(alone):
    for garbage in (b"\0\xff" * 50 + b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                    b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n", b"GET http:// HTTP/1.1\r\n\r\n"):  # fmt: skip
        with socket.create_connection(("127.0.0.1", alone.ports[1]), PATIENCE_S) as one:
            with contextlib.suppress(OSError):  # it may hang up before all is sent
                one.sendall(garbage)
                answer = one.recv(1 << 16)
                assert answer == b"" or int(answer.split()[1]) >= 400, answer
    assert ask(alone, "/healthz")[0] == 200
    assert alone.process.poll() is None


def test_all_nodes_tell_of_a_jobs_steps(cluster_of):
    cluster = cluster_of(3)
    trainers = cluster.start(PLANNED, job="told")
    wait_until_running(trainers)
    for node in cluster.nodes:
        status, text = curl(node, job_path("told", "steps"))
        assert status == 200, text
        (job,) = json.loads(text)
        assert job["job"] == "told" and job["missing"] == []
        assert [one["node"] for one in job["nodes"]] == [one.name for one in cluster.nodes]
        for rank, one in enumerate(job["nodes"]):
            assert one["ranks"] == [rank] and one["steps"]
            for step in one["steps"]:
                assert [len(step[name]) for name in ("before_ns", "backward_ns", "wait_ns")] == [1, 1, 1]
    (plan,) = json.loads(curl(cluster.nodes[0], job_path("told", "plan"))[1])
    assert sorted(name for group in plan["sets"][0]["groups"] for name in group) == ["layer0", "layer1", "layer2"]
    until(lambda: curl(cluster.nodes[0], job_path("told", "explain"))[0] == 200, "it is explained")
    (explained,) = json.loads(curl(cluster.nodes[0], job_path("told", "explain"))[1])
    assert explained["job"] == "told" and explained["nodes"] == 3 and explained["findings"]
    until(lambda: jobs_on(cluster.nodes[0]).get("told", {}).get("planned_steps"), "the status tells of steps")
    listed = jobs_on(cluster.nodes[0])["told"]
    assert listed["step_seconds"] > listed["exposed_seconds"] > 0
    end_running(trainers)
    until(lambda: curl(cluster.nodes[0], job_path("told", "steps"))[0] == 404, "the job is gone")


def test_only_its_own_node_sees_it(cluster_of):
    cluster = cluster_of(3)
    node, other = cluster.nodes[:2]
    for path in ("/", "/page.js", "/api/status", job_path("a", "plan")):
        status, text = curl(other, path, of=node)
        assert status == 403 and f"users of node '{node.name}' alone" in text, (path, text)
        # Nor does who says that he comes from there.
        assert curl(other, path, "-H", "X-Forwarded-For: 127.0.0.1", "-H", "Host: localhost", of=node)[0] == 403
    for path in ("/healthz", "/readyz", "/metrics"):
        assert curl(other, path, of=node)[0] == 200
    assert curl(node, "/api/status")[0] == 200


def test_jobs_may_have_any_name(cluster_of):
    cluster = cluster_of(3)
    names = [name.strip() for name in HOSTILE]
    trainers = [cluster.start("sum_forever(open_job(ARGUMENT))", nodes=[0], argument=name) for name in names]
    for one in trainers:
        wait_until_running(one)
    node = cluster.nodes[0]
    until(lambda: jobs_on(node).keys() == set(names), "the status tells of all of them")
    for name in names:
        for what in ("steps", "plan"):
            status, text = curl(node, job_path(name, what))
            assert status == 200 and json.loads(text)[0]["job"] == name, (name, text)
    for one in trainers:
        end_running(one)


@needs_nobody
def test_each_user_sees_his_own_jobs(cluster_of):
    cluster = cluster_of(1, GROUP_SETTING)
    node = cluster.nodes[0]
    with way_opened(node.socket):
        ours = cluster.start(SUM_FOREVER, job="ours")
        wait_until_running(ours)
        theirs = start_neighbour(cluster, "job = open_job('theirs'); time.sleep(600)")
        until(lambda: jobs_on(node).keys() == {"ours", "theirs"}, "both jobs are there")
        url = f"http://{node.address}:9431"
        seen = json.loads(node.run(*NOBODY, "curl", "-s", f"{url}/api/status"))
        assert [job["name"] for job in seen["jobs"]] == ["theirs"] and seen["jobs_hidden"] == 1
        assert "none that you may see" in node.run(*NOBODY, "curl", "-s", url + job_path("ours", "plan"))
        theirs.kill()
        end_running(ours)


# Asks from an end that was connected to another address of the node before, and names that address.
# What is left of the first connection belongs to no process, and the kernel shows it as root's.
POSER = """
import socket, sys
def connect(own, to):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.settimeout(60)
    one.bind(own)
    one.connect((to, 9431))
    return one
first = connect(("127.0.0.1", 0), "127.0.0.2")
own = first.getsockname()
first.sendall(b"GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: keep-alive\\r\\n\\r\\n")
first.shutdown(socket.SHUT_WR)  # first, so that the waiting end is this one
while first.recv(65536):
    pass
first.close()
second = connect(own, "127.0.0.1")
second.sendall(b"GET /api/status HTTP/1.1\\r\\nHost: 127.0.0.2\\r\\n\\r\\n")
while piece := second.recv(65536):
    sys.stdout.buffer.write(piece)
"""


@needs_nobody
def test_who_names_another_connection_gets_no_other_users_jobs(cluster_of):
    cluster = cluster_of(1, "metrics.address=0.0.0.0")
    node = cluster.nodes[0]
    ours = cluster.start(SUM_FOREVER, job="ours")
    wait_until_running(ours)
    until(lambda: jobs_on(node).keys() == {"ours"}, "root sees the job")
    head, _, body = node.run(*NOBODY, "/usr/bin/python3", "-c", POSER).partition("\n\n")
    assert head.startswith("HTTP/1.1 200"), head
    seen = json.loads(body)
    assert seen["jobs"] == [] and seen["jobs_hidden"] == 1
    end_running(ours)


def test_it_is_not_ready_while_it_drains(cluster_of):
    cluster = cluster_of(2)
    trainers = cluster.start(SUM_FOREVER)
    wait_until_running(trainers)
    node = cluster.nodes[1]
    assert curl(node, "/readyz") == (200, "ready\n")
    node.signal(signal.SIGTERM)

    def said() -> str:
        done = ran(node.enter(["curl", "-s", f"http://{node.address}:9431/readyz"]))
        assert done.stdout in ("ready\n", "stopping: takes no new trainers\n"), done
        return done.stdout

    until(lambda: said().startswith("stopping"), "it says that it drains")  # for 3 s, as trainers are there
    for trainer in trainers:
        trainer.error()
    cluster.wait_until_gone(node)


@pytest.mark.skipif(IS_SANITIZED, reason="what bounds the steps would be the sanitizer")
def test_many_who_look_do_not_stop_training(cluster_of):
    cluster = cluster_of(3)
    trainers = cluster.start(PLANNED, job="watched")
    wait_until_running(trainers)
    node = cluster.nodes[0]
    paths = ["/api/status", job_path("watched", "steps")] * 50
    file = cluster.directory / "urls"
    file.write_text("\n".join(f"url = http://{node.address}:9431{path}" for path in paths))
    lookers = [
        subprocess.Popen(node.enter(["curl", "-s", "-o", "/dev/null", "--config", str(file)]), stdin=subprocess.DEVNULL)
        for _ in range(12)
    ]
    for looker in lookers:
        looker.wait(PATIENCE_S)
    assert braidctl(node.socket, "status").returncode == 0
    end_running(trainers)  # they all still run
