# SPDX-License-Identifier: Apache-2.0
"""Running a daemon: configuration, signals, its socket, braidctl, /metrics."""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Sequence

from braid_build import BRAIDCTL, BRAIDD, PATIENCE_S, REPOSITORY, braidctl, ran
from real_cluster import SUM_FOREVER, needs_daemons, until, wait_until_running

pytestmark = needs_daemons


def braidd(*arguments: str) -> subprocess.CompletedProcess:
    return ran([BRAIDD, *arguments])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Alone:
    """One daemon on the host's loopback, with a configuration file of its own."""

    def __init__(self, folder, log_level: str = "info", launcher: Sequence[str] = ()):
        self._launcher = launcher
        self.socket, self.config = str(folder / "braidd.sock"), folder / "braidd.yaml"
        self.log_path, self._folder = folder / "log", folder
        self.ports = (free_port(), free_port())
        self.write(log_level)
        self.start()

    def write(self, log_level: str, more: str = "") -> None:
        self.config.write_text(
            f"node:\n  name: alone\ncontrol:\n  port: {self.ports[0]}\n"
            f"client:\n  socket: {self.socket}\n  group: ''\ntransport:\n  rails: [lo]\n"
            f"metrics:\n  port: {self.ports[1]}\nlog:\n  level: {log_level}\n{more}"
        )

    def start(self) -> None:
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [*self._launcher, BRAIDD, "--config", str(self.config)], stdin=subprocess.DEVNULL, stderr=log
            )
        until(lambda: "ready" in self.log() or self.process.poll() is not None, "it is ready")

    def log(self) -> str:
        return self.log_path.read_text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def test_a_good_configuration(tmp_path):
    file = tmp_path / "good.yaml"
    file.write_text(
        f"transport:\n  chunk_bytes: 64KiB\nclient:\n  group: ''\n  socket: {tmp_path}/s\n"
        f"metrics:\n  port: {free_port()}\n"
    )
    done = braidd("--config", str(file), "--check-config")
    assert (done.returncode, done.stderr) == (0, "")
    assert str(file) in done.stdout
    printed = braidd("--config", str(file), "--print-config").stdout
    assert re.search(r"chunk_bytes: (65536|64KiB)", printed)
    again = tmp_path / "printed.yaml"
    again.write_text(printed)
    assert braidd("--config", str(again), "--check-config").returncode == 0


def test_mistakes_are_reported_all_at_once_with_their_places(tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(
        "transport:\n  flow_per_link: 4\n  chunk_bytes: 100MB\ncontrol:\n  port: 70000\n"
        "log:\n  level: loud\n"
    )
    done = braidd("--config", str(file), "--check-config", "--set", "page.access=token")
    assert done.returncode == 2
    for words in [
        f"{file}:2: transport.flow_per_link: unknown key; did you mean 'transport.flows_per_link'?",
        f"{file}:3: transport.chunk_bytes: ",
        f"{file}:5: control.port: 70000 is out of range; use 1 to 65535",
        f"{file}:7: log.level: 'loud'",
        "--set page.access: 'token' is neither off nor loopback nor an absolute path",
    ]:
        assert words in done.stderr, done.stderr
    assert braidd("--config", str(tmp_path / "nowhere.yaml"), "--check-config").returncode == 2


def test_ports_of_a_daemon_that_runs_are_no_mistake(tmp_path):
    with Alone(tmp_path) as daemon:
        done = ran([BRAIDD, "--check-config", "--config", daemon.config])
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert f"not checked: ports and the socket, because a daemon answers at {daemon.socket}" in done.stdout


def test_versions_agree():
    version = re.search(r"VERSION (\d+\.\d+\.\d+)", (REPOSITORY / "CMakeLists.txt").read_text())[1]
    assert braidd("--version").stdout.split() == ["braidd", version]
    done = ran([BRAIDCTL, "--version"])
    assert done.returncode == 0 and version in done.stdout


def test_sighup_changes_what_can_be_changed_and_says_what_cannot(tmp_path):
    with Alone(tmp_path) as daemon:
        daemon.write("debug", "collective:\n  streams: 9\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: "log.level: info → debug" in daemon.log(), "the level changes")
        until(lambda: "needs a restart" in daemon.log(), "it says what needs a restart")
        assert "collective.streams: 4 → 9 needs a restart" in daemon.log()
        daemon.config.write_text("log:\n  level: loud\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: "nothing was changed" in daemon.log(), "the mistake is reported")
        assert f"{daemon.config}:2: log.level" in daemon.log()
        assert braidctl(daemon.socket, "status").returncode == 0


def test_sighup_takes_limits_and_the_logs_format(tmp_path):
    with Alone(tmp_path) as daemon:
        asked = ["curl", "-sf", f"http://127.0.0.1:{daemon.ports[1]}/metrics"]
        assert "braid_result_memory_max_bytes 1073741824" not in ran(asked).stdout
        daemon.write("info\n  format: json", "collective:\n  result_memory_max: 1GiB\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: "log.format: auto → json" in daemon.log(), "the format changes")
        assert "needs a restart" not in daemon.log()
        until(lambda: "braid_result_memory_max_bytes 1073741824" in ran(asked).stdout, "the limit holds")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: "has not changed" in daemon.log(), "another line")
        last = daemon.log().splitlines()[-1]
        assert json.loads(last)["message"] == "SIGHUP: the configuration has not changed"


def test_a_report_has_what_a_bug_report_needs_and_no_secrets(tmp_path):
    token = "0123456789abcdef" * 4
    file = tmp_path / "page.token"
    file.touch(mode=0o600)
    file.write_text(token)
    environment = {**os.environ, "BRAID_JOB_TOKEN": "of-a-job", "UCX_LOG_LEVEL": "warn"}
    with Alone(tmp_path) as daemon:
        daemon.process.terminate()
        daemon.process.wait(PATIENCE_S)
        daemon.log_path.write_text("")
        daemon.write("info", f"page:\n  access: {file}\n")
        daemon.start()
        asked = [BRAIDCTL, "--socket", daemon.socket, "report"]
        text = ran(asked, env=environment)
        assert text.returncode == 0, text.stderr
        for part in ("== versions", "braidd: ", "TCP on lo", "== limits", "of: braidd (process", "net.core.wmem_max: ",
                     "lo: 127.0.0.1", ", up, MTU ", "UCX_LOG_LEVEL: warn", f"page.access: {file} ({daemon.config}:",
                     f"source: {daemon.log_path}", "is ready"):  # fmt: skip
            assert part in text.stdout, part
        assert "BRAID_JOB_TOKEN: (hidden)" in text.stdout
        assert token not in text.stdout and "of-a-job" not in text.stdout
        report = json.loads(ran([*asked, "--json", "--lines", "1"]).stdout)
        assert report["daemon"]["answers"] and report["daemon"]["process"] == daemon.process.pid
        assert report["status"]["node"]["name"] == "alone" and len(report["log"]["lines"]) == 1


def test_a_report_is_made_where_no_daemon_answers(tmp_path):
    log, config = tmp_path / "log", tmp_path / "braidd.yaml"
    log.write_text("first\nlast\n")
    config.write_text("log:\n  level: loud\n")
    asked = [BRAIDCTL, "--socket", f"{tmp_path}/none", "report", "--log-file", log, "--config", config]
    done = ran(asked)
    assert done.returncode == 0, done.stderr
    for part in ("answers: false", "error: no braidd on this node", "nothing, because no daemon answers", "  last\n",
                 f"{config}:2: log.level: 'loud' is no log level", "of: this process"):  # fmt: skip
        assert part in done.stdout, part
    report = json.loads(ran([*asked, "--json"]).stdout)
    assert report["status"] is None and report["log"]["lines"] == ["first", "last"]
    assert ran([*asked, "--lines", "x"]).returncode == 2


def test_sigterm_ends_an_idle_daemon_and_removes_the_socket(tmp_path):
    with Alone(tmp_path) as daemon:
        assert os.path.exists(daemon.socket)
        daemon.process.terminate()
        assert daemon.process.wait(PATIENCE_S) == 0
        assert not os.path.exists(daemon.socket), daemon.log()


def test_one_daemon_per_socket_and_a_dead_ones_socket_is_replaced(tmp_path):
    with Alone(tmp_path) as daemon:
        second = braidd("--config", str(daemon.config), "--set", f"control.port={free_port()}")
        assert second.returncode == 1
        assert f"another braidd is listening on '{daemon.socket}'" in second.stderr
        assert braidctl(daemon.socket, "status").returncode == 0  # the first one was not disturbed
        daemon.process.kill()
        daemon.process.wait()
        assert os.path.exists(daemon.socket)
        daemon.log_path.write_text("")
        daemon.start()
        assert braidctl(daemon.socket, "status").returncode == 0, daemon.log()


def test_a_taken_port_is_named(tmp_path):
    key_file = tmp_path / "key"
    key_file.write_text("0123456789abcdef")
    key_file.chmod(0o600)
    with Alone(tmp_path) as daemon, socket.create_server(("127.0.0.1", 0)) as taken:
        for key, port in (("control.port", taken.getsockname()[1]), ("metrics.port", daemon.ports[1])):
            own = {"client.socket": f"{tmp_path}/other", "control.port": free_port(), "control.listen": "127.0.0.1",
                   "control.cluster_key_file": key_file, "metrics.port": free_port(), "client.group": "",
                   key: port}  # fmt: skip
            done = braidd(*[part for k, v in own.items() for part in ("--set", f"{k}={v}")])
            assert done.returncode == 1, done.stderr
            assert str(port) in done.stderr, done.stderr


def test_sigterm_fails_running_jobs_with_the_reason(cluster_of):
    cluster = cluster_of(2)
    trainers = cluster.start(SUM_FOREVER)
    wait_until_running(trainers)
    node = cluster.nodes[1]
    node.signal(signal.SIGTERM)
    for trainer in trainers:
        error = trainer.error()
        assert "node 'node1' is shutting down" in error["text"], error
    cluster.wait_until_gone(node)
    assert not os.path.exists(node.socket)
    cluster.tool.terminate()  # it knows how the daemons ended
    cluster.tool.wait(PATIENCE_S)
    assert "did not end" not in cluster.said() and "exit code 1" not in cluster.said()


def test_braidctl_shows_a_running_job(cluster_of):
    cluster = cluster_of(2)
    trainers = cluster.start(
        SUM_FOREVER, job="shown", nodes=[0, 1, 1], environment={"BRAID_JOB_WEIGHT": "17"}
    )
    wait_until_running(trainers)
    node = cluster.nodes[1]
    status = node.status()
    assert set(status["node"]) == {"name", "id", "address"} and status["node"]["name"] == "node1"
    assert status["rails"] == ["eth0"] and "TCP on eth0" in status["transport"]
    assert {flow["direction"] for flow in status["flows"]} == {"in", "out"}
    assert {flow["state"] for flow in status["flows"]} == {"open"}
    assert {flow["peer"] for flow in status["flows"]} == {"node0"}
    assert [peer["name"] for peer in status["peers"]] == ["node0"]
    (job,) = status["jobs"]
    assert (job["name"], job["state"], job["world_size"]) == ("shown", "running", 3)
    assert job["weight"] == 17
    assert [one["name"] for one in job["nodes"]] == ["node0", "node1"]
    assert [one["ranks"] for one in job["nodes"]] == [[0], [1, 2]]
    assert [(one["rank"], one["pid"]) for one in job["local_ranks"]] == [
        (one.rank, one.pid) for one in trainers[1:]
    ]
    assert job["steps_done"] > 0 and job["bytes"] > 0 and job["epoch"] == 1
    table = braidctl(node.socket, "status").stdout
    for word in ["node1", "shown", "running", "17", "rank 2 is process", status["version"], "open"]:
        assert word in table, table
    for trainer in trainers:
        trainer.kill()
    until(lambda: not node.status()["jobs"], "the job is gone")
    assert braidctl("/nowhere/braidd.sock", "status").returncode != 0
    assert "/nowhere/braidd.sock" in braidctl("/nowhere/braidd.sock", "status").stderr


def documented_metrics() -> set[str]:
    text = (REPOSITORY / "docs" / "reference.md").read_text()
    table = text.partition("<!-- metrics: begin -->")[2].partition("<!-- metrics: end -->")[0]
    return set(re.findall(r"^\| `(braid_\w+)`", table, re.M))


def metrics(node) -> dict[str, float]:
    page = node.run("curl", "-sf", f"http://{node.address}:9431/metrics")
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


# Series of GPUs, of codecs, of planned tensors, and of links that carry much.
NOT_OF_EACH_JOB = re.compile(
    "braid_(gpu|codec|job_(step|exposed|rank|finding|plan|iteration|tuning|work)|link_(slowest|median|path))"
)


def test_metrics_has_every_documented_family_and_its_numbers_grow(cluster_of):
    cluster = cluster_of(2)
    node = cluster.nodes[0]
    trainers = cluster.start(SUM_FOREVER)
    wait_until_running(trainers)
    first = metrics(node)
    families = {name.partition("{")[0] for name in first if name.startswith("braid_")}
    documented = documented_metrics()
    # A slow machine's flows may have carried enough to have a rate.
    assert {name for name in documented if not NOT_OF_EACH_JOB.match(name)} <= families <= documented
    assert first["braid_jobs"] == 1 and first["braid_control_peers"] == 1
    grows = [
        'braid_operations_total{collective="all-reduce"}', "braid_operation_bytes_total",
        "braid_units_total", 'braid_wire_bytes_total{direction="sent"}',
        'braid_wire_bytes_total{direction="received"}', 'braid_chunks_total{direction="sent"}',
    ]  # fmt: skip
    until(lambda: all(metrics(node)[name] > first[name] for name in grows), "they grow")
    trainers[1].kill()
    trainers[0].error()
    until(lambda: metrics(node)["braid_jobs"] == 0, "the job is gone")
    failed = 'braid_job_failures_total{reason="job_failed"}'
    assert metrics(node)[failed] == first[failed] + 1
