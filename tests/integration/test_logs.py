# SPDX-License-Identifier: Apache-2.0
"""What braidd writes to its log: formats, the journal's fields, and how much of it."""

import json
import os
import re
import struct
import subprocess
import sys
import time

import pytest
from braid_build import PATIENCE_S
from real_cluster import SHORT_JOB, needs_daemons, until
from single_daemon import SingleDaemon

pytestmark = needs_daemons

# A line's end that begins another line, JSON's end, an escape sequence, no UTF-8.
HOSTILE = b'x\n<0>root: "},{"level":"error"\x1b[2J\xff\xfe'
# A trainer in C may have any bytes as its job's name.
HOSTILE_JOB = """
class AnyBytes(str):
    def encode(self):
        return super().encode(errors="surrogateescape")
with open_job(AnyBytes(os.environ["BRAID_JOB"])) as job:
    ended(job, job.submit(dynamic(job), 0, np.ones(5, np.float32)))
report(good=True)
"""
# Opens and leaves so many jobs, one after the other.
MANY_JOBS = """
for number in range(ARGUMENT):
    with open_job(f"flood-{number}"):
        pass
"""


def objects(daemon: SingleDaemon) -> list[dict]:
    return [json.loads(line) for line in daemon.lines()]


def test_json_is_one_object_a_line(tmp_path):
    with SingleDaemon("log.format=json") as daemon:
        for trainer in daemon.start(SHORT_JOB, world=2):
            assert trainer.result()["good"]
        assert daemon.stop() == 0
    told = objects(daemon)
    for one in told:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", one["time"])
        assert one["level"] in ("info", "warn", "error")
        assert one["node"] == "alone"
        assert one["message"]
    joined = [one for one in told if " is here: process" in one["message"]]
    assert sorted((one["job"], one["rank"]) for one in joined) == [("train", 0), ("train", 1)]
    assert {one["user"] for one in told if "job" in one} == {os.getuid()}


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_hostile_name_stays_within_its_line(log_format):
    with SingleDaemon(f"log.format={log_format}") as daemon:
        (trainer,) = daemon.start(HOSTILE_JOB, job=HOSTILE)
        assert trainer.result()["good"]
        assert daemon.stop() == 0
    if log_format == "json":
        jobs = {one.get("job") for one in objects(daemon)} - {None}
        assert jobs == {HOSTILE.decode(errors="replace")}
        # A busy machine may make it warn of a loop that was held up.
        assert {one["level"] for one in objects(daemon) if "was held up" not in one["message"]} == {"info"}
    else:
        for line in daemon.lines():
            assert re.match(rb"\d{4}-\d\d-\d\d [\d:]{8}\.\d{3} (info|warn|error) ", line), line
            assert not re.search(rb"[\x00-\x1f\x7f\xff]", line), line
        assert b"x\\n<0>root" in b"\n".join(daemon.lines())


def parse_entry(entry: bytes) -> dict[str, bytes]:
    """As journald reads it."""
    fields = {}
    while entry:
        name, sign, rest = re.match(rb"([A-Z0-9_]+)([=\n])(.*)", entry, re.DOTALL).groups()
        if sign == b"=":
            value, _, entry = rest.partition(b"\n")
        else:
            (size,) = struct.unpack_from("<Q", rest)
            value, entry = rest[8 : 8 + size], rest[9 + size :]
        fields[name.decode()] = value
    return fields


# In a mount namespace of its own this script is the machine's journal: it listens where journald does, starts the
# daemon with a stderr that is "the journal's", and reports each datagram.
JOURNAL = r"""
import ctypes, os, signal, socket, subprocess, sys
subprocess.run(["mount", "--make-rprivate", "/"], check=True)
os.makedirs("/run/systemd/journal", exist_ok=True)
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/systemd/journal"], check=True)
journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
journal.bind("/run/systemd/journal/socket")
mode, *argv = sys.argv[1:]
stat = os.fstat(2)
inode = stat.st_ino if mode == "matches" else stat.st_ino + 1
daemon = subprocess.Popen(
    argv, env={**os.environ, "JOURNAL_STREAM": f"{stat.st_dev}:{inode}"},
    preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL),  # it ends with this script
)
signal.signal(signal.SIGTERM, lambda *_: daemon.terminate())
journal.settimeout(0.1)
while True:
    has_ended = daemon.poll() is not None
    try:
        print(journal.recv(1 << 16).hex(), file=sys.stdout, flush=True)
    except TimeoutError:
        if has_ended:
            sys.exit(daemon.returncode)
"""


def may_mount() -> bool:
    done = subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
    )
    return done.returncode == 0


needs_mounts = pytest.mark.skipif(not may_mount(), reason="no permission to mount")


@needs_mounts
def test_the_journal_gets_fields(tmp_path):
    told = tmp_path / "journal"
    with open(told, "wb") as out:
        prefix = ["unshare", "-m", sys.executable, "-c", JOURNAL, "matches"]
        with SingleDaemon(prefix=prefix, out=out) as daemon:
            for job, source in (("train", SHORT_JOB), (HOSTILE, HOSTILE_JOB)):
                (trainer,) = daemon.start(source, job=job)
                assert trainer.result()["good"]
            assert daemon.stop() == 0
    entries = [parse_entry(bytes.fromhex(line)) for line in told.read_text().split()]
    assert daemon.said() == "", "all goes to the journal"
    assert {entry["SYSLOG_IDENTIFIER"] for entry in entries} == {b"braidd"}
    assert {entry["BRAID_NODE"] for entry in entries} == {b"alone"}
    # A busy machine may make it warn of a loop that was held up.
    assert {entry["PRIORITY"] for entry in entries if b"was held up" not in entry["MESSAGE"]} == {b"6"}
    joined = [entry for entry in entries if b" is here: process" in entry["MESSAGE"]]
    assert [(one["BRAID_JOB"], one["BRAID_RANK"]) for one in joined] == [(b"train", b"0"), (HOSTILE, b"0")]
    assert not any(b"\n" in entry["MESSAGE"] for entry in entries)
    known = {"MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER"}
    known |= {f"BRAID_{name}" for name in ("NODE", "JOB", "USER", "RANK", "PEER")}
    assert set().union(*entries) <= known


@needs_mounts
def test_a_stderr_that_is_not_the_journals_gets_text(tmp_path):
    prefix = ["unshare", "-m", sys.executable, "-c", JOURNAL, "differs"]
    told = tmp_path / "journal"
    with open(told, "wb") as out, SingleDaemon(prefix=prefix, out=out) as daemon:
        assert daemon.stop() == 0
    assert told.read_text() == ""
    assert re.match(r"\d{4}-\d\d-\d\d [\d:]{8}\.\d{3} info ", daemon.said())


def test_without_a_journals_socket_priorities_come_first():
    with SingleDaemon(journal_is_stderr=True) as daemon:
        assert daemon.stop() == 0
    if os.path.exists("/run/systemd/journal/socket"):
        pytest.skip("there is a journal here")
    assert all(re.match(rb"<[3467]>", line) for line in daemon.lines())


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_trainer_that_opens_jobs_in_a_loop_fills_no_disk(log_format):
    jobs = 400
    begun = time.monotonic()
    with SingleDaemon(f"log.format={log_format}") as daemon:
        (trainer,) = daemon.start(MANY_JOBS, argument=jobs)
        assert trainer.end() == 0
        assert daemon.stop() == 0
    seconds = time.monotonic() - begun
    said = daemon.said()
    opened = re.findall(r"job 'flood-\d+': rank 0 of 1 is here", said)
    held = re.findall(r"and ([\d,]+) more lines like this in 10 s; the last: job 'flood-\d+': rank 0 of 1 is", said)
    # In 10 s: of 16 jobs a line each, of all further ones 20, and then how many more there were, with the last.
    assert len(opened) <= (seconds // 10 + 2) * (16 + 21)
    assert len(opened) - len(held) + sum(int(count.replace(",", "")) for count in held) == jobs


def test_what_is_held_back_is_told_when_nothing_follows():
    with SingleDaemon() as daemon:
        (trainer,) = daemon.start(MANY_JOBS, argument=40)
        assert trainer.end() == 0
        until(lambda: "more lines like this in 10 s" in daemon.said(), "the held lines are told", PATIENCE_S)
        assert daemon.process.poll() is None


def test_debug_lines_are_not_held_back():
    with SingleDaemon("log.level=debug") as daemon:
        (trainer,) = daemon.start(MANY_JOBS, argument=60)
        assert trainer.end() == 0
        assert daemon.stop() == 0
    assert len(re.findall(r" debug client \d+ \(", daemon.said())) >= 60
