# SPDX-License-Identifier: Apache-2.0
"""What people mistype, forget or have not got. The last line that says anything names the thing and the remedy, no
line is a traceback where nothing of the script's is at fault, and the exit code is right: 2 for wrong arguments, 1 for
what went wrong."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from typing import NamedTuple

import pytest
from braid_build import BUILD, IS_BUILT, IS_SANITIZED, REPOSITORY, ran
from single_daemon import SingleDaemon, free_port

pytestmark = pytest.mark.skipif(not IS_BUILT or IS_SANITIZED, reason="it is about a plain build (BRAID_BUILD)")

NOWHERE = "/nowhere/braidd.sock"
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


class Input(NamedTuple):
    """What is typed, the exit code, and what the last line says: the thing, and the remedy."""

    command: str
    code: int
    thing: str
    remedy: str
    variables: str = ""


PROGRAMS = [
    Input("braidctl statsu", 2, "'statsu'", "did you mean 'status'?"),
    Input("braidctl explian --job a", 2, "'explian'", "did you mean 'explain'?"),
    Input("braidctl status --jsn", 2, "'--jsn'", "did you mean '--json'?"),
    Input("braidctl --sokcet /x status", 2, "'--sokcet'", "did you mean '--socket'?"),
    Input("braidctl", 2, "a command is required", "status, "),
    Input("braidctl status now", 2, "'now'", "braidctl status --help"),
    Input(f"braidctl --socket {NOWHERE} status", 1, NOWHERE, "start it with"),
    Input("braidctl --socket /etc/hostname status", 1, "/etc/hostname", "BRAID_SOCKET"),
    Input("braidctl plan", 2, "--trace, or --job", "braidctl plan --help"),
    Input("braidd --vresion", 2, "'--vresion'", "did you mean '--version'?"),
    Input("braidd --config", 2, "--config", "braidd --help"),
    Input("braidd --config /nowhere.yaml", 2, "/nowhere.yaml", "No such file"),
    Input("braidd --set transprot.rails=eth0", 2, "transprot.rails", "did you mean 'transport.rails'?"),
    Input("braidd --set control.port=70000", 2, "control.port", "65535"),
    Input("braidd --set control.port", 2, "control.port", "KEY=VALUE"),
    Input("braid-bench", 2, "a command is required", "all_reduce"),
    Input("braid-bench allreduce", 2, "'allreduce'", "did you mean 'all_reduce'?"),
    Input("braid-bench all_reduce --sise 4", 2, "'--sise'", "did you mean '--size"),
]
PYTHON = [
    Input("braid-run", 2, "SCRIPT", "required"),
    Input("braid-run --verison x.py", 2, "'--verison'", "did you mean '--version'?"),
    Input("braid-run no-such-script.py", 2, "'no-such-script.py'", "there is no script"),
    Input("braid-run lonely.py", 1, "torchrun", "braid-run SCRIPT"),
    Input("python -c 'import torch'", 1, "BRAID_ENABLE is 'maybe'", "'1' (on) and '0' (off)", "BRAID_ENABLE=maybe"),
    Input("braid-run lonely.py", 1, "BRAID_LOG is 'loud'", "'warning', 'info' and 'debug'", "BRAID_LOG=loud"),
    Input("braid-run lonely.py", 1, "BRAID_CODEC is 'int9'", "did you mean 'int", "BRAID_CODEC=int9"),
    Input("braid-run lonely.py", 1, "'ratoi'", "right are ratio, full-every", "BRAID_CODEC=topk:ratoi=0.1"),
    Input("braid-run lonely.py", 1, "ratio is 'lots'", "right is a number", "BRAID_CODEC=topk:ratio=lots"),
    Input("braid-run lonely.py", 1, "BRAID_UPDATE is 'sdg'", "od-sgd", "BRAID_UPDATE=sdg"),
    Input("braid-run lonely.py", 1, "BRAID_KEEP_BUCKETS is '2'", "'1' (on)", "BRAID_KEEP_BUCKETS=2"),
]
_RANKS = "--nproc-per-node 2 lonely.py"
RANKS = [
    Input(f"braid-run {_RANKS}", 1, NOWHERE, "start it with", f"BRAID_SOCKET={NOWHERE}"),
    Input(f"torchrun {_RANKS}", 1, NOWHERE, "start it with", f"BRAID_ENABLE=1 BRAID_SOCKET={NOWHERE}"),
    Input(f"braid-run {_RANKS}", 1, "/nowhere/libbraid.so.0", "BRAID_LIBRARY", "BRAID_LIBRARY=/nowhere/libbraid.so.0"),
    Input(f"braid-run {_RANKS}", 1, "BRAID_JOB_WEIGHT is '9999'", "1 to 100",
          f"BRAID_SOCKET={NOWHERE} BRAID_JOB_WEIGHT=9999"),
]  # fmt: skip
SCRIPT = "import torch.distributed as dist\ndist.init_process_group('gloo')\n"


def last_line(text: str) -> str:
    """The last one with words; torchrun ends with a line of '='."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in reversed(lines) if line.strip("=- ")), "")


def words_of(command: str) -> list[str]:
    program, *arguments = shlex.split(command)
    started = {
        "python": [sys.executable],
        "braid-run": [sys.executable, "-m", "braid.torch.launcher"],
        "torchrun": [sys.executable, "-m", "torch.distributed.run", "--standalone"],
    }
    return [*started.get(program, [str(BUILD / "bin" / program)]), *arguments]


def environment_of(one: Input) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items()
        if not name.startswith("BRAID") and name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    }  # fmt: skip
    given = dict(word.split("=", 1) for word in one.variables.split())
    own = {"PYTHONPATH": str(REPOSITORY / "python"), "BRAID_LIBRARY": str(BUILD / "lib" / "libbraid.so.0")}
    return {**kept, **own, **given}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "lonely.py").write_text(SCRIPT)
    return tmp_path


def typed(one: Input, folder) -> str:
    done = ran(words_of(one.command), env=environment_of(one), cwd=folder, stdin=subprocess.DEVNULL)
    output = done.stdout + done.stderr
    assert done.returncode == one.code, output
    said = last_line(output)
    assert one.thing in said and one.remedy in said, output
    return output


@pytest.mark.parametrize("one", PROGRAMS, ids=lambda one: one.command)
def test_a_program(one, folder):
    assert "Traceback" not in typed(one, folder)


@needs_torch
@pytest.mark.parametrize("one", PYTHON, ids=lambda one: f"{one.variables} {one.command}")
def test_a_script(one, folder):
    assert "Traceback" not in typed(one, folder)


@needs_torch
@pytest.mark.parametrize("one", RANKS, ids=lambda one: f"{one.variables} {one.command}")
def test_ranks_under_torchrun(one, folder):
    """What braid says comes where it happens, without a traceback, and where torchrun ends. (How often depends on how
    soon torchrun ends the other rank: once each, unless that takes 15 s.)"""
    output = typed(one, folder)
    assert output.count(one.remedy) >= 2, output
    own, _, torchruns = output.partition("Traceback")
    assert one.remedy in own and "torch/distributed/run.py" in torchruns.split("Traceback")[0]


def test_all_variables_that_a_trainer_reads_are_known():
    sys.path.insert(0, str(REPOSITORY / "python"))
    from braid.torch.environment.variables import NAMES

    read = re.compile(r"(?:getenv\(|environ(?:\.get)?[(\[]|VARIABLE = |Variable = |is_on\()[\"'](BRAID_\w+)[\"']")
    sources = [
        *(REPOSITORY / "python").rglob("*.py"), *(REPOSITORY / "client" / "src").rglob("*.cpp"),
        REPOSITORY / "src" / "gpu" / "nccl.cpp",
    ]  # fmt: skip
    assert {name for path in sources for name in read.findall(path.read_text(encoding="utf-8"))} == NAMES


def test_codecs_that_are_found_wrong_at_the_start_are_those_that_the_daemon_refuses():
    sys.path.insert(0, str(REPOSITORY / "python"))
    from braid.torch.environment.codec_check import PARAMETERS

    source = (REPOSITORY / "src" / "codec" / "codec_spec.cpp").read_text(encoding="utf-8")
    rows = re.findall(r'^    \{"([\w-]+)", ([\w |]+), ', source, re.M)
    names = {"kNothing": (), "kWholeBlock": ("block",), "kFullEvery": ("full-every",)}
    of_daemon = {
        name: tuple(word for flag in flags.split(" | ") for word in names.get(flag, (flag[1:].lower(),)))
        for name, flags in rows
    }
    assert len(of_daemon) > 10
    assert of_daemon == {name: words for name, words in PARAMETERS.items() if name != "powersgd"}


# The second group cannot be made, because the daemon has ended; the first one can.
LATE = """
import os, signal, torch.distributed as dist
dist.init_process_group("gloo")
os.kill(int(os.environ["DAEMON"]), signal.SIGKILL)
def in_the_middle_of_training():
    dist.new_group([0])
in_the_middle_of_training()
"""


@needs_torch
def test_a_group_that_fails_later_is_told_with_the_place_in_the_script(folder):
    (folder / "late.py").write_text(LATE)
    with SingleDaemon() as daemon:
        alone = f"RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT={free_port()}"
        variables = f"{alone} BRAID_SOCKET={daemon.socket} DAEMON={daemon.process.pid} BRAID_PERSONAL=0"
        output = typed(Input("braid-run late.py", 1, "braid", "", variables), folder)
    assert "in_the_middle_of_training" in output


@needs_torch
def test_a_variable_that_nobody_reads_is_named(folder):
    one = Input(f"braid-run {_RANKS}", 1, NOWHERE, "start it with", f"BRAID_SOCKET={NOWHERE} BRAID_CODECS=int8")
    assert typed(one, folder).count("braid does not read the variable BRAID_CODECS: did you mean BRAID_CODEC?") == 1
