# SPDX-License-Identifier: Apache-2.0
"""A cluster of real daemons that stays up while a test starts trainers on it."""

import contextlib
import ctypes
import itertools
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator

import pytest
from braid_build import (
    BRAIDD,
    IS_BUILT,
    IS_SANITIZED,
    PATIENCE_S,
    braidctl,
    python,
    ran,
    trainer_environment,
)
from cluster_tool import CLUSTER, REFUSED
from trainer_process import Trainer, until

TRAINER = str(pathlib.Path(__file__).resolve().parent / "trainer.py")

needs_daemons = pytest.mark.skipif(
    REFUSED is not None or not IS_BUILT, reason=REFUSED or "braidd is not built (BRAID_BUILD)"
)
# What scripts/cluster says of a daemon that ended badly, and not because a test killed it.
CRASH = re.compile(
    r"braidd of .*(?:ended: exit code [1-9]|killed by SIG(?!KILL|TERM)|did not end within).*"
)
SANITIZER_REPORT = re.compile(
    r"(?:ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error: )[\s\S]{0,6000}"
)
LOOP_HELD_UP = re.compile(r"loop '[^']+' was held up for .*")
PR_SET_PDEATHSIG = 1
# For tests of flows: no job tries few of them.
ALL_FLOWS = "debug.pin=[flows_per_link]"
# For daemons that stand still for a moment.
PEERS_WAIT = "control.peer_timeout_ms=600000"
# The flows' tests run once more over UCX (scripts/check.sh). They also pass if all is encrypted.
TRANSPORT = {"ucx": ("transport.tcp=ucx",), "encrypted": ("transport.encryption=on",)}.get(
    os.environ.get("BRAID_TEST_TCP", ""), ()
)
_job_numbers = itertools.count(1)


def end_running(trainers: list[Trainer]) -> None:
    """They all still run, so every sum was right, and end now.

    First all are looked at: when one ends, the others are told at once, and end too.
    """
    for trainer in trainers:
        assert trainer.process.poll() is None, trainer.output()
    for trainer in trainers:
        trainer.kill()


class Node:
    """One node of the cluster: its daemon can be looked at, stopped, killed and started again."""

    def __init__(self, fields: dict):
        self.name, self.address, self.socket = fields["name"], fields["address"], fields["socket"]
        self.namespace, self.interface = fields["namespace"], fields["interface"]
        self.log_path = pathlib.Path(fields["log"])
        self.daemon_pid: int = fields["daemon_pid"]
        self.daemon_command: list[str] = fields["daemon_command"]
        self.was_stopped = False  # by a test: so were its loops
        self._restarted: subprocess.Popen | None = None

    def enter(self, argv: list[str]) -> list[str]:
        return ["ip", "netns", "exec", self.namespace, *argv]

    def run(self, *argv: str) -> str:
        done = ran(self.enter(list(argv)))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def status(self) -> dict:
        done = braidctl(self.socket, "status", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def counter(self, name: str) -> int:
        return self.status()["counters"][name]

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def thread_states(self) -> set[str]:
        """States of the daemon's threads, as in proc(5)."""
        states = set()
        threads = pathlib.Path(f"/proc/{self.daemon_pid}/task")
        with contextlib.suppress(OSError):  # the process has gone
            for stat in list(threads.glob("*/stat")):
                with contextlib.suppress(OSError):  # this thread has gone
                    states.add(stat.read_text().rpartition(")")[2].split()[0])
        return states

    def is_alive(self) -> bool:
        """Also when only some of its threads are left: its ports are taken until the last has gone."""
        return bool(self.thread_states() - {"Z", "X"})

    def signal(self, number: int) -> None:
        self.was_stopped |= number == signal.SIGSTOP
        os.kill(self.daemon_pid, number)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Meanwhile the daemon stands still. With PEERS_WAIT it is not lost by its peers."""
        self.signal(signal.SIGSTOP)
        try:
            until(lambda: self.thread_states() == {"T"}, f"braidd of {self.name} stands still")
            yield
        finally:
            self.signal(signal.SIGCONT)

    def restart(self) -> None:
        """Starts a killed daemon again, as it was started first. Its ports are free once it is gone."""
        until(lambda: not self.is_alive(), f"the killed braidd of {self.name} is gone")
        self.stop_restarted()
        with open(self.log_path, "ab") as log:
            self._restarted = subprocess.Popen(
                self.daemon_command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.daemon_pid = self._restarted.pid

        def serves() -> bool:
            assert self._restarted.poll() is None, f"{self.name} did not start:\n{self.log()[-2000:]}"
            return braidctl(self.socket, "status").returncode == 0

        until(serves, f"{self.name} serves again")

    def stop_restarted(self) -> None:
        if self._restarted is not None and self._restarted.poll() is None:
            self._restarted.send_signal(signal.SIGCONT)
            self._restarted.terminate()
            try:
                self._restarted.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._restarted.kill()
                self._restarted.wait()

    def footprint(self) -> dict[str, int]:
        """What a job that is over must not leave in the daemon."""
        maps = pathlib.Path(f"/proc/{self.daemon_pid}/maps").read_text()
        return {
            "descriptors": len(os.listdir(f"/proc/{self.daemon_pid}/fd")),
            "memfd mappings": maps.count("/memfd:"),
        }

    def rss_bytes(self) -> int:
        status = pathlib.Path(f"/proc/{self.daemon_pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) << 10


def end_with_the_tests() -> None:
    """A test run that is killed takes its clusters along: the tool cleans up on SIGTERM."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


class Cluster:
    """`with Cluster(nodes=3, settings=["log.level=debug"]) as cluster: …`"""

    def __init__(
        self, nodes: int, settings: tuple | list = (), daemon: str = BRAIDD, racks: int = 0,
        delay_ms: float = 0, ipv6: bool = False,
    ):  # fmt: skip
        argv = [CLUSTER, "--nodes", str(nodes), "--daemon", daemon, "--timeout", "1500"]
        argv += ["--racks", str(racks)] if racks else []
        argv += ["--delay-ms", str(delay_ms)] if delay_ms else []
        argv += ["--ipv6"] if ipv6 else []
        for setting in (*TRANSPORT, *settings):
            argv += ["--set", setting]
        # Outside of the cluster's directory, which goes with the cluster.
        self._logs = tempfile.TemporaryDirectory()
        argv += ["--keep-logs", self._logs.name]
        argv += ["--", "sh", "-c", "echo $BRAID_CLUSTER_DIR; exec sleep 1500"]
        self._errors = tempfile.TemporaryFile("w+", errors="replace")
        self.tool = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            preexec_fn=end_with_the_tests,
        )
        self.trainers: list[Trainer] = []
        readable, _, _ = select.select([self.tool.stdout], [], [], PATIENCE_S)
        line = self.tool.stdout.readline() if readable else ""
        if not line.startswith("["):
            self.stop()
            raise AssertionError(f"the cluster did not start:\n{self.said()}")
        self.directory = pathlib.Path(line.split(maxsplit=1)[1].strip())
        state = json.loads((self.directory / "cluster.json").read_text())
        self.id = state["id"]
        self.nodes = [Node(fields) for fields in state["nodes"]]

    def said(self) -> str:
        self._errors.seek(0)
        return self._errors.read()

    def start(
        self,
        source: str,
        *,
        nodes: list[int] | None = None,
        argument=None,
        job: str | None = None,
        prefix: list[str] | None = None,
        environment: dict[str, str] | None = None,
        **differing: dict[int, str],
    ) -> list[Trainer]:
        """One rank on each of `nodes` (indices; default: one per node), running `source`.

        `differing` gives single ranks another environment: RANK={1: "0"}.
        """
        placed = list(range(len(self.nodes))) if nodes is None else nodes
        common = {
            **os.environ,
            **trainer_environment(),
            "WORLD_SIZE": str(len(placed)),
            "MASTER_ADDR": self.nodes[placed[0]].address,
            "BRAID_JOB": job or f"job-{next(_job_numbers)}",
            **(environment or {}),
        }
        started = []
        for rank, index in enumerate(placed):
            node = self.nodes[index]
            own = {**common, "RANK": str(rank), "BRAID_SOCKET": node.socket}
            own |= {name: values[rank] for name, values in differing.items() if rank in values}
            argv = [*(prefix or []), *python(), TRAINER, source, json.dumps(argument)]
            started.append(Trainer(node, rank, argv, own))
        self.trainers += started
        return started

    def total(self, counter: str) -> int:
        return sum(node.counter(counter) for node in self.nodes)

    def expect_healthy(self, nodes: list[int] | None = None) -> None:
        """Every daemon lives and the next job works, whatever happened before."""
        for node in self.nodes:
            assert node.is_alive(), f"braidd of {node.name} is dead:\n{node.log()[-4000:]}"
        for trainer in self.start(SHORT_JOB, nodes=nodes):
            assert trainer.result()["good"]

    def settled_footprints(self) -> list[dict[str, int]]:
        """Footprints once no job is left (daemons learn of the end a moment after trainers)."""
        until(lambda: all(not node.status()["jobs"] for node in self.nodes), "all jobs are gone")
        until(lambda: all(connections_of(node) <= 1 for node in self.nodes), "clients are gone")
        return [node.footprint() for node in self.nodes]

    def expect_footprints(self, before: list[dict[str, int]]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while (now := self.settled_footprints()) != before and time.monotonic() < deadline:
            # Fewer is no leak: flows that died are re-opened a little later.
            if all(n[key] <= b[key] for n, b in zip(now, before, strict=True) for key in b):
                return
            time.sleep(0.1)
        left = [n[key] <= b[key] for n, b in zip(now, before, strict=True) for key in b]
        assert all(left), f"before {before}, now {now}"

    def wait_until_gone(self, node: Node) -> None:
        until(lambda: not node.is_alive(), f"braidd of {node.name} has ended")

    def stop(self) -> None:
        """Ends everything. A daemon that was not killed by a test must have ended well."""
        for trainer in self.trainers:
            if trainer.process.poll() is None:
                trainer.kill()
        for node in getattr(self, "nodes", []):
            if node.is_alive():
                node.signal(signal.SIGCONT)
            node.stop_restarted()
        self.tool.terminate()
        self.tool.communicate(timeout=PATIENCE_S)
        crashes = CRASH.findall(self.said())
        stopped = {f"{node.name}.log" for node in getattr(self, "nodes", []) if node.was_stopped}
        for log in sorted(pathlib.Path(self._logs.name).glob("*.log")):
            text = log.read_text(errors="replace")
            if report := SANITIZER_REPORT.search(text):
                crashes.append(f"{log.name}: {report[0]}")
            # Nothing fails for it, for machines are shared; but the run's summary shows it.
            if not IS_SANITIZED and log.name not in stopped and (held_up := LOOP_HELD_UP.findall(text)):
                warnings.warn(f"{log.name}: {'; '.join(held_up)}", stacklevel=2)
        self._logs.cleanup()
        assert not crashes, "\n".join([*crashes, self.said()[-6000:]])

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:  # pytest shows it with the test that has failed
            for node in self.nodes:
                print(f"braidd of {node.name} logged:\n{node.log()[-4000:]}")
        self.stop()


def connections_of(node: Node) -> int:
    return node.counter("braid_client_connections")


SHORT_JOB = """
with open_job() as job:
    got = ended(job, job.submit(dynamic(job), 0, np.full(5, RANK + 1, dtype=np.float32)))
    report(good=bool((np.frombuffer(got, np.float32) == WORLD * (WORLD + 1) / 2).all()))
"""
# What most failure tests run: a job that adds up until something happens.
SUM_FOREVER = "sum_forever(open_job())"


def wait_until_running(trainers: list[Trainer]) -> None:
    for trainer in trainers:
        trainer.wait_for("RUNNING")


def steps_of(trainers: list[Trainer]) -> int:
    return trainers[0].node.status()["jobs"][0]["steps_done"]


def expect_to_go_on(trainers: list[Trainer]) -> None:
    """Some steps more; a wrong sum, or an operation that takes too long, ends the trainers."""

    def ended() -> list[Trainer]:
        return [trainer for trainer in trainers if trainer.process.poll() is not None]

    before = 0 if ended() else steps_of(trainers)
    until(lambda: ended() or steps_of(trainers) > before + 2, "the job goes on")
    for trainer in ended():
        raise AssertionError(f"rank {trainer.rank} has ended:\n{trainer.output()}")
