# SPDX-License-Identifier: Apache-2.0
"""braidd and trainers as containers have them: users, processes, file systems and networks that do not see each other.

The daemon runs as the image's user, without capabilities, on a root that it cannot write to. Trainers see the folder of
its socket alone, read-only. Linux's own namespaces stand in for a container runtime."""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator

import pytest
from braid_build import BRAIDCTL, BRAIDD, IS_BUILT, PATIENCE_S, ran, trainer_environment
from cluster_tool import is_running
from real_cluster import until
from second_user import NEIGHBOUR, can_become_nobody, nobodys_python
from test_image import user_of_the_image

DAEMON_UID, DAEMON_GID = user_of_the_image()
TRAINER_UID = 1000
HARMLESS = ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
APART = ["unshare", "--mount", "--pid", "--net", "--fork"]
SUM = "with open_job('pods', int(ARGUMENT), 2) as job: report(sum=sum_of(job, 1000))"
# The kernel says from 6.5 on which process has connected, also to who cannot see that process.
IS_TOLD_OF_PROCESSES = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 5)


def namespaces_refused() -> str | None:
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv", "ip"))):
        return "root, unshare(1), setpriv(1) and ip(8) are needed"
    done = ran([*APART, "ip", "link", "set", "lo", "up"])
    return done.stderr.strip() or "namespaces are not allowed here" if done.returncode else None


REFUSED = namespaces_refused()
pytestmark = [
    pytest.mark.skipif(not IS_BUILT, reason="braidd is not built (BRAID_BUILD)"),
    pytest.mark.skipif(REFUSED is not None, reason=str(REFUSED)),
    pytest.mark.skipif(IS_BUILT and not can_become_nobody(), reason="cannot run the build's programs as another user"),
]


class Pod:
    """One process in namespaces of its own, what it says, and its end."""

    def __init__(self, prepare: str, argv: list[str], environment: dict[str, str] | None = None):
        self._out = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(
            [*APART, "sh", "-ec", f"ip link set lo up\n{prepare}\nexec {shlex.join(argv)}"],
            env={**os.environ, **trainer_environment(), "MASTER_ADDR": "127.0.0.1", **(environment or {})},
            stdin=subprocess.DEVNULL, stdout=self._out, stderr=subprocess.STDOUT, cwd="/",
        )  # fmt: skip

    def output(self) -> str:
        size = os.fstat(self._out.fileno()).st_size
        return os.pread(self._out.fileno(), size, 0).decode(errors="replace")

    def inner_pid(self) -> int:
        """The pid of the process itself, which unshare has forked."""
        return int(pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()[0])

    def end(self) -> int:
        return self.process.wait(PATIENCE_S)

    def report(self) -> dict:
        self.end()
        assert (found := re.findall(r"^RESULT (.*)$", self.output(), re.M)), self.output()
        return json.loads(found[-1])

    def stop(self) -> None:
        # The first process of the namespace, with which all others in it end. unshare, which waits for it, ends then.
        # Its --kill-child is undone by the change of the user.
        while self.process.poll() is None:
            with contextlib.suppress(OSError, IndexError):  # not yet forked, or just gone
                os.kill(self.inner_pid(), signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.1)


class Node:
    """The node's folder, and the daemon's pod, which may be another one later."""

    def __init__(self, folder: pathlib.Path):
        self.folder, self.socket = folder, folder / "braidd.sock"
        self.pods: list[Pod] = []
        self.start()

    def start(self) -> None:
        settings = {"client.socket": self.socket, "client.group": "", "metrics.port": 0, "node.state_directory": ""}
        given = [f"--set={name}={value}" for name, value in settings.items()]
        prepare = f"mount --bind {self.folder} {self.folder}\nmount -o remount,bind,ro /"
        who = [f"--reuid={DAEMON_UID}", f"--regid={DAEMON_GID}", "--clear-groups"]
        self.daemon = Pod(prepare, ["setpriv", *who, *HARMLESS, BRAIDD, "--config=/dev/null", *given])
        self.pods.append(self.daemon)
        until(self.serves, "braidd serves")

    def serves(self) -> bool:
        assert self.daemon.process.poll() is None, self.daemon.output()
        return self.ask().returncode == 0

    def ask(self) -> subprocess.CompletedProcess:
        return ran(
            [BRAIDCTL, "--socket", str(self.socket), "status", "--json"],
            env={**os.environ, "BRAID_DAEMON_UID": str(DAEMON_UID)},
        )  # fmt: skip

    def jobs(self) -> list[dict]:
        done = self.ask()
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["jobs"]

    def trainer(self, source: str, rank: int, uid: int = TRAINER_UID, **environment: str) -> Pod:
        prepare = f"mount --bind {self.folder} {self.folder}\nmount -o remount,bind,ro {self.folder}"
        who = [f"--reuid={uid}", f"--regid={uid}", f"--groups={DAEMON_GID}"]
        argv = ["setpriv", *who, *HARMLESS, *nobodys_python(), NEIGHBOUR, source, json.dumps(rank)]
        pod = Pod(prepare, argv, {"BRAID_SOCKET": str(self.socket), **environment})
        self.pods.append(pod)
        return pod


@pytest.fixture
def node() -> Iterator[Node]:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="braid-pods-", dir="/tmp"))
    os.chown(folder, DAEMON_UID, DAEMON_GID)
    folder.chmod(0o755)
    one = None
    try:
        one = Node(folder)
        yield one
    finally:
        for pod in one.pods if one else []:
            pod.stop()
        shutil.rmtree(folder)


def known_daemon() -> dict[str, str]:
    return {"BRAID_DAEMON_UID": str(DAEMON_UID)}


def test_ranks_in_pods_of_their_own_add_up(node):
    trainers = [node.trainer(SUM, rank, **known_daemon()) for rank in range(2)]
    assert [trainer.report() for trainer in trainers] == [{"sum": 2.0}] * 2


def test_the_trainer_must_be_told_who_the_daemon_is(node):
    refused = node.trainer(SUM, 0).report()
    assert refused["error"] == "BRAID_ERROR_PERMISSION_DENIED"
    assert f"set BRAID_DAEMON_UID={DAEMON_UID}" in refused["text"]


def test_who_is_not_in_the_group_is_kept_out(node):
    node.socket.chmod(0o600)  # of the daemon's user alone: as for a pod without the supplemental group
    refused = node.trainer(SUM, 0, **known_daemon()).report()
    assert refused["error"] == "BRAID_ERROR_PERMISSION_DENIED" and str(node.socket) in refused["text"]


def test_a_folder_that_was_mounted_shows_the_next_daemons_socket(node):
    # It waits for its file with the folder mounted since before the daemon is another one.
    wait = f"import pathlib\nwhile not pathlib.Path('{node.folder}/go').exists(): time.sleep(0.02)\n"
    trainers = [node.trainer(f"print('WAITS', flush=True)\n{wait}{SUM}", rank, **known_daemon()) for rank in range(2)]
    until(lambda: all("WAITS" in trainer.output() for trainer in trainers), "the trainers wait")
    before = node.socket.stat().st_ctime_ns  # its inode's number may be given out again
    os.kill(node.daemon.inner_pid(), signal.SIGTERM)
    assert node.daemon.end() == 0, node.daemon.output()
    node.start()
    assert node.socket.stat().st_ctime_ns != before
    (node.folder / "go").touch()
    assert [trainer.report() for trainer in trainers] == [{"sum": 2.0}] * 2


@pytest.mark.skipif(not IS_TOLD_OF_PROCESSES, reason="needs Linux 6.5: SO_PEERPIDFD")
def test_the_daemon_sees_the_end_of_a_process_that_it_cannot_name(node):
    # A child that lives on holds the socket; the pod's first process is another one, as torchrun would be.
    fork = "open_job('pods', 0, 1)\nif os.fork() == 0: time.sleep(600)\nprint('FORKED', os.getpid(), flush=True)\n"
    source = f"if os.fork() != 0: time.sleep(600)\nos.setsid()\njob = {fork}time.sleep(600)"
    trainer = node.trainer(source, 0, **known_daemon())
    until(lambda: "FORKED" in trainer.output() and node.jobs(), "the trainer is in its job")
    assert [rank["pid"] for rank in node.jobs()[0]["local_ranks"]] == [0]
    first = trainer.inner_pid()
    (rank,) = pathlib.Path(f"/proc/{first}/task/{first}/children").read_text().split()
    (child,) = pathlib.Path(f"/proc/{rank}/task/{rank}/children").read_text().split()
    os.kill(int(rank), signal.SIGKILL)
    until(lambda: not node.jobs(), "the job is over")
    assert is_running(int(child)) and is_running(first)
