# SPDX-License-Identifier: Apache-2.0
"""Daemons that users start for themselves: braidd --personal, and its start by processes that need one."""

import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator

import pytest
from braid_build import BRAIDCTL, BRAIDD, braidctl, ran, trainer_environment
from cluster_tool import is_running
from real_cluster import SUM_FOREVER, needs_daemons
from second_user import NEIGHBOUR, NOBODY_UID, needs_nobody, nobodys_python
from single_daemon import SingleDaemon
from trainer_process import Trainer, until

pytestmark = [needs_daemons, needs_nobody]

# A user that no machine has, besides nobody.
SOMEBODY_UID = 61_234
# Joins the run's daemon, with others if there are more, and opens a job there.
JOIN = """
from braid import _personal
run, key, rank, world, job = ARGUMENT
_personal.join(_personal.Run(run, key), "no braidd on this node")
with open_job(job, rank, world) as opened:
    report(socket=os.environ["BRAID_SOCKET"], sum=sum_of(opened, 1000))
    time.sleep(600)
"""


class User:
    """An unprivileged user, with a folder of his own as $XDG_RUNTIME_DIR."""

    def __init__(self, uid: int, folder: pathlib.Path):
        self.uid = uid
        self.runtime = folder / f"runtime-{uid}"
        self.runtime.mkdir(mode=0o700)
        os.chown(self.runtime, uid, uid)
        self.base = self.runtime / "braid"
        self._log = folder / f"log-{uid}"
        self._started: list[subprocess.Popen] = []
        self._ranks: list[Trainer] = []

    def command(self, *argv: str) -> list[str]:
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", *argv]

    def environment(self, **more: str) -> dict[str, str]:
        own = {"XDG_RUNTIME_DIR": str(self.runtime), "BRAID_DAEMON": BRAIDD, "MASTER_ADDR": "127.0.0.1"}
        kept = {name: value for name, value in os.environ.items() if name != "BRAID_SOCKET"}
        return {**kept, **trainer_environment(), **own, **more}

    def ran(self, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
        return ran(self.command(*argv), env=self.environment(**more), cwd="/")

    def starts(self, *settings: str) -> dict:
        """His daemon; its news."""
        argv = [BRAIDD, "--personal", *(part for setting in settings for part in ("--set", setting))]
        with open(self._log, "ab") as log:
            self._started.append(
                subprocess.Popen(
                    self.command(*argv), env=self.environment(), cwd="/", stdin=subprocess.DEVNULL,
                    stdout=log, stderr=log,
                )  # fmt: skip
            )
        until((self.base / "braidd.json").exists, "the daemon tells its news")
        return json.loads((self.base / "braidd.json").read_text())

    def trains(self, *argument) -> Trainer:
        argv = self.command(*nobodys_python(), NEIGHBOUR, JOIN, json.dumps(argument))
        self._ranks.append(Trainer(Nowhere(), 0, argv, self.environment()))
        return self._ranks[-1]

    def expect_nothing_left(self, pid: int) -> None:
        until(lambda: not is_running(pid), "the daemon has ended")
        said = self._log.read_text() if self._log.exists() else ""
        assert not (left := sorted(self.runtime.rglob("*"))), f"{left}\n{said}"

    def end(self) -> None:
        for rank in self._ranks:
            rank.kill()
        for process in self._started:
            process.kill()
            process.wait()


class Nowhere:
    """In no namespace of its own."""

    name = "this machine"

    @staticmethod
    def enter(argv: list[str]) -> list[str]:
        return argv


@pytest.fixture
def folder() -> Iterator[pathlib.Path]:
    """Everybody may pass through, as other tests that run meanwhile cannot change."""
    with tempfile.TemporaryDirectory(prefix="braid-personal-") as made:
        path = pathlib.Path(made)
        path.chmod(0o755)
        yield path


@pytest.fixture
def users(folder) -> Iterator[list[User]]:
    both = [User(NOBODY_UID, folder), User(SOMEBODY_UID, folder)]
    yield both
    for user in both:
        user.end()


@pytest.fixture
def user(users) -> User:
    return users[0]


def test_a_user_gets_a_daemon_without_configuration_and_a_second_one_is_told_of_the_first(user):
    news = user.starts()
    assert news["socket"] == str(user.base / "braidd.sock") and news["page"].startswith("http://localhost:")
    assert "control_port" not in news  # Without a key it works alone.
    modes = {each.name: stat.S_IMODE(each.lstat().st_mode) for each in user.base.iterdir()}
    assert stat.S_IMODE(user.base.stat().st_mode) == 0o700
    assert set(modes.values()) == {0o600} and {"braidd.json", "braidd.sock"} <= set(modes)
    second = user.ran(BRAIDD, "--personal")
    assert second.returncode == 1
    told = f"your personal braidd runs already: process {news['pid']}, socket {news['socket']}, page {news['page']}"
    assert second.stderr.splitlines()[-1].endswith(told)
    for socket in ((), ("--socket", news["socket"])):
        status = user.ran(BRAIDCTL, *socket, "status", "--json")
        assert status.returncode == 0, status.stderr
    user.expect_nothing_left(news["pid"])


def test_what_is_set_counts_more_than_what_personal_chooses(user):
    socket = str(user.runtime / "other.sock")
    news = user.starts(f"client.socket={socket}", "metrics.port=0", "node.name=mine")
    assert (news["socket"], news["node"], "page" in news) == (socket, "mine", False)
    os.kill(news["pid"], signal.SIGTERM)
    user.expect_nothing_left(news["pid"])


def test_daemons_of_two_users_do_not_meet(users):
    socket_of = {}
    for user in users:
        socket_of[user.uid] = user.starts()["socket"]
    for user, other in (users, reversed(users)):
        assert user.ran(BRAIDCTL, "--socket", socket_of[user.uid], "status").returncode == 0
        refused = user.ran(BRAIDCTL, "--socket", socket_of[other.uid], "status")
        assert refused.returncode != 0 and "may not" in refused.stderr, refused.stderr


def test_the_daemon_of_the_node_goes_on_beside_those_of_two_users(users):
    with SingleDaemon() as node:
        (trainer,) = node.start(SUM_FOREVER)
        trainer.wait_for("RUNNING")
        ranks = [user.trains("run", "", 0, 1, "train") for user in users]
        for rank in ranks:
            rank.wait_for("RESULT")
        told = [rank.results()[0] for rank in ranks]
        assert len({result["socket"] for result in told} | {node.socket}) == 3
        for user, result in zip(users, reversed(told), strict=True):
            refused = user.ran(BRAIDCTL, "--socket", result["socket"], "status")
            assert refused.returncode != 0 and "may not" in refused.stderr, refused.stderr
        pids = [json.loads((user.base / "run" / "braidd.json").read_text())["pid"] for user in users]
        for user, rank, pid in zip(users, ranks, pids, strict=True):
            rank.kill()
            user.expect_nothing_left(pid)
        before = steps_of_job(node)
        until(lambda: steps_of_job(node) > before, "the job of the node's daemon goes on")
        assert trainer.process.poll() is None


def steps_of_job(node: SingleDaemon) -> int:
    (job,) = json.loads(braidctl(node.socket, "status", "--json").stdout)["jobs"]
    return job["steps_done"]


def test_of_many_processes_one_starts_the_daemon_which_ends_with_them_however_they_end(user):
    world = 6
    ranks = [user.trains("run", "", rank, world, "together") for rank in range(world)]
    for rank in ranks:
        rank.wait_for("RESULT")
    results = [rank.results()[-1] for rank in ranks]
    folder = user.base / "run"
    assert results == [{"socket": str(folder / "braidd.sock"), "sum": world}] * world
    told = [rank.output() for rank in ranks if "no braidd on this node: started one for you" in rank.output()]
    news = json.loads((folder / "braidd.json").read_text())
    assert len(told) == 1, told
    for part in (f"(process {news['pid']})", news["page"], f"{folder}/braidd.log"):
        assert part in told[0]
    for rank in ranks:
        rank.process.send_signal(signal.SIGKILL)
    user.expect_nothing_left(news["pid"])


def test_a_key_is_in_no_command_line_and_in_no_file_once_the_daemon_has_read_it(user):
    key = "0123456789abcdef" * 4
    rank = user.trains("run", key, 0, 1, "alone")
    rank.wait_for("RESULT")
    folder = user.base / "run"
    news = json.loads((folder / "braidd.json").read_text())
    assert 0 < news["control_port"] < 65536
    command = pathlib.Path(f"/proc/{news['pid']}/cmdline").read_bytes().decode()
    environment = pathlib.Path(f"/proc/{news['pid']}/environ").read_bytes().decode()
    files = [each.read_text() for each in folder.iterdir() if each.is_file()]
    assert len(files) >= 3  # News, lock, log.
    assert not any(key in text for text in (command, environment, rank.output(), *files))
    rank.kill()
    user.expect_nothing_left(news["pid"])


def test_two_runs_of_a_user_have_a_daemon_each(user):
    first, second = user.trains("first", "", 0, 1, "a"), user.trains("second", "", 0, 1, "a")
    for rank in (first, second):
        rank.wait_for("RESULT")
    pids = [json.loads((user.base / run / "braidd.json").read_text())["pid"] for run in ("first", "second")]
    assert pids[0] != pids[1]
    asked = user.ran(BRAIDCTL, "status")
    sockets = ", ".join(str(user.base / run / "braidd.sock") for run in ("first", "second"))
    assert asked.returncode == 1
    assert f"you have 2 personal daemons; --socket says which: {sockets}" in asked.stderr
    first.kill()
    until(lambda: not is_running(pids[0]), "the first run's daemon has ended")
    assert sorted(each.name for each in user.base.iterdir()) == ["second"]
    assert is_running(pids[1])
    second.kill()
    user.expect_nothing_left(pids[1])


@pytest.fixture
def prepared(users) -> Iterator[pathlib.Path]:
    """Where the second user's folder is, without $XDG_RUNTIME_DIR."""
    path = pathlib.Path(f"/tmp/braid-{SOMEBODY_UID}")
    yield path
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        path.rmdir()


@pytest.mark.parametrize("what, told", [("folder", f"belongs to user {NOBODY_UID}"), ("link", "is a link")])
def test_a_folder_that_a_stranger_has_prepared_is_refused(users, prepared, what, told):
    stranger, user = users
    if what == "folder":
        prepared.mkdir(mode=0o700)
        os.chown(prepared, stranger.uid, stranger.uid)
    else:
        prepared.symlink_to(user.runtime)
    done = user.ran(BRAIDD, "--personal", XDG_RUNTIME_DIR="")
    assert done.returncode == 1
    assert f"'{prepared}', the folder of a personal daemon, {told}" in done.stderr, done.stderr
    program = "from braid import _personal; _personal.join(_personal.Run('run', ''), 'none')"
    done = user.ran(*nobodys_python(), "-c", program, XDG_RUNTIME_DIR="")
    assert done.returncode != 0
    assert f"{prepared}, which is to be the folder of your personal braidd, {told}" in done.stderr
    assert list(user.runtime.iterdir()) == []


def test_without_a_program_the_remedies_are_named(user):
    program = "from braid import _personal; _personal.join(_personal.Run('run', ''), 'no braidd on this node')"
    done = user.ran(*nobodys_python(), "-c", program, BRAID_DAEMON="no-such-program")
    assert "BRAID_DAEMON is no-such-program, which is no program" in done.stderr.splitlines()[-1]
    done = user.ran(*nobodys_python(), "-c", program, BRAID_DAEMON="/usr/bin/false")
    assert "/usr/bin/false ended with exit code 1" in done.stderr.splitlines()[-1]
    assert list(user.runtime.iterdir()) == []  # What was made for it has gone.


# With a /run of its own.
PREFERS = """
mount -t tmpfs none /run && mkdir /run/braid && chmod 755 /run/braid
"$0" --config /dev/null --set client.group="$1" --set control.port=auto --set metrics.port=0 \
    --set transport.rails=lo 2>/dev/null &
daemon=$!
while [ ! -S /run/braid/braidd.sock ]; do kill -0 $daemon || exit 1; sleep 0.05; done
shift
"$@"
kill $daemon
wait $daemon
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare(1) is not installed")
@pytest.mark.parametrize("group, told", [
    ("nogroup", "needs: None"), ("root", "needs: the braidd of this node is not open to you"),
])  # fmt: skip
def test_a_daemon_of_all_users_is_preferred_where_it_lets_the_user_in(user, group, told):
    program = "from braid import _personal; print('needs:', _personal.why_needed(is_asked_for=False))"
    asks = user.command(*nobodys_python(), "-c", program)
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", PREFERS, BRAIDD, group, *asks]
    done = ran(argv, env=user.environment(), cwd="/")
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr}")
    assert done.stdout.strip() == told, done.stderr
    assert list(user.runtime.iterdir()) == []


def test_one_that_was_started_by_hand_is_used(user):
    news = user.starts()
    program = (
        "import os; from braid import _personal; "
        "print(_personal.why_needed(is_asked_for=False), os.environ['BRAID_SOCKET'])"
    )
    done = user.ran(*nobodys_python(), "-c", program)
    assert done.stdout.strip() == f"None {news['socket']}", done.stderr
    user.expect_nothing_left(news["pid"])
