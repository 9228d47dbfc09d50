# SPDX-License-Identifier: Apache-2.0
"""`braidctl top` on a terminal: keys, colours, and a terminal that is as it was, however top ends."""

import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator

import pytest
from braid_build import BRAIDCTL, PATIENCE_S, braidctl
from real_cluster import needs_daemons
from single_daemon import SingleDaemon
from trainer_process import until

pytestmark = [needs_daemons, pytest.mark.sanitized]

ENTERED, LEFT = b"\x1b[?1049h", b"\x1b[?1049l"
COLOURS = re.compile(rb"\x1b\[(?:\d;)?3[0-7]m")
UP, DOWN = b"\x1b[A", b"\x1b[B"


@pytest.fixture(scope="module")
def daemon() -> Iterator[SingleDaemon]:
    with SingleDaemon() as one:
        until(one.serves, "braidd serves")
        yield one


class Top:
    """braidctl top in a terminal of its own."""

    def __init__(self, socket: str, *arguments: str, **environment: str):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 100, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self._theirs = theirs  # kept open, so that its settings can be looked at after the end
        usual = {"PATH": os.environ["PATH"], "TERM": "xterm", **environment}
        self.process = subprocess.Popen(
            [BRAIDCTL, "--socket", socket, "top", "--seconds", "0.1", *arguments],
            stdin=theirs, stdout=theirs, stderr=theirs, env=usual, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        self.shown = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)
        os.close(self._theirs)

    def read(self) -> bytes:
        while select.select([self.ours], [], [], 0)[0]:
            self.shown += os.read(self.ours, 1 << 16)
        return self.shown

    def wait_for(self, text: bytes) -> None:
        """In what is shown from now on: a screen is drawn anew all the time."""
        self.read()
        self.shown = b""
        until(lambda: text in self.read(), f"top shows {text!r}")

    def wait_until_chosen(self, job: bytes) -> None:
        self.read()
        self.shown = b""
        chosen = re.compile(rb"\x1b\[7m[! ]{3}" + job)
        until(lambda: chosen.search(self.read()), f"{job!r} is chosen")

    def press(self, keys: bytes) -> None:
        os.write(self.ours, keys)

    def ended(self) -> int:
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()  # who is not read does not end
            time.sleep(0.01)
        assert self.process.poll() is not None
        self.read()
        return self.process.returncode

    def is_as_before(self) -> bool:
        return termios.tcgetattr(self._theirs) == self.before


def test_q_ends_it_and_the_terminal_is_as_it_was(daemon):
    with Top(daemon.socket) as top:
        until(lambda: ENTERED in top.read(), "the alternate screen is there")
        top.wait_for(b"no jobs")
        assert not top.is_as_before()
        top.press(b"q")
        assert top.ended() == 0
        assert top.shown.endswith(LEFT) and top.is_as_before()


def test_so_it_is_after_signals(daemon):
    for end in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        with Top(daemon.socket) as top:
            top.wait_for(b"no jobs")
            if end == signal.SIGINT:
                top.press(b"\x03")
            else:
                top.process.send_signal(end)
            assert top.ended() == -end
            assert top.shown.endswith(LEFT) and top.is_as_before()


def test_so_it_is_while_it_is_stopped(daemon):
    with Top(daemon.socket) as top:
        top.wait_for(b"no jobs")
        top.press(b"\x1a")
        state = pathlib.Path(f"/proc/{top.process.pid}/stat")
        until(lambda: state.read_text().rpartition(")")[2].split()[0] == "T", "it is stopped")
        assert top.read().endswith(LEFT) and top.is_as_before()
        top.shown = b""
        top.process.send_signal(signal.SIGCONT)
        until(lambda: ENTERED in top.read(), "the alternate screen is there again")
        top.wait_for(b"no jobs")
        top.press(b"q")
        assert top.ended() == 0 and top.is_as_before()


def test_so_it_is_when_the_daemon_ends():
    with SingleDaemon() as daemon:
        until(daemon.serves, "braidd serves")
        with Top(daemon.socket) as top:
            top.wait_for(b"no jobs")
            daemon.process.kill()
            assert top.ended() == 1
            screen, _, said = top.shown.rpartition(LEFT)
            assert screen and b"braidctl: " in said and top.is_as_before()


def test_keys(daemon):
    trainers = [daemon.start("sum_forever(open_job())", job=name)[0] for name in ("first", "second")]
    for trainer in trainers:
        trainer.wait_for("RUNNING")
    with Top(daemon.socket) as top:
        top.wait_for(b"2 jobs")
        top.press(b"s")  # whatever bounds them
        top.wait_for(b"by name")
        top.press(UP)
        top.wait_until_chosen(b"first")
        top.press(b"j")
        top.wait_until_chosen(b"second")
        top.press(b"k")
        top.wait_until_chosen(b"first")
        top.press(DOWN)
        top.wait_until_chosen(b"second")
        top.press(b"r")
        top.wait_for(b"by name reversed")
        top.press(b"?")
        top.wait_for(b"another order")
        top.press(b"q")
        top.wait_for(b"2 jobs")
        top.press(b"\r")
        top.wait_for(b"job 'second': why")
        top.press(b"\x1b")
        top.wait_for(b"2 jobs")
        # A window that is smaller now.
        fcntl.ioctl(top.ours, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 12, 0, 0))
        top.wait_for(b"braidctl top\x1b[K")
        top.press(b"q")
        assert top.ended() == 0
    for trainer in trainers:
        trainer.kill()


def test_as_many_tables_as_were_asked_for(daemon):
    with Top(daemon.socket, "--count", "2") as top:
        assert top.ended() == 0 and top.shown.endswith(LEFT) and top.is_as_before()


def test_no_screen_and_no_colours_where_no_terminal_is(daemon):
    done = braidctl(daemon.socket, "top", "--count", "1", "--seconds", "0.1")
    assert done.returncode == 0 and done.stdout == "no jobs\n\n"
    with Top(daemon.socket, "--count", "1", TERM="dumb") as top:
        assert top.ended() == 0 and b"\x1b" not in top.shown


def test_no_colours_where_none_are_wanted(daemon):
    with Top(daemon.socket, "--count", "1", NO_COLOR="1") as top:
        assert top.ended() == 0 and ENTERED in top.shown and not COLOURS.search(top.shown)
