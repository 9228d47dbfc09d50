# SPDX-License-Identifier: Apache-2.0
"""Words of braid's programs in bash, zsh and fish: what the programs offer, and what the shells make of it."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import pytest
from braid_build import BRAIDCTL, BUILD, IS_BUILT, IS_SANITIZED, PATIENCE_S, REPOSITORY, ran
from single_daemon import SingleDaemon

pytestmark = pytest.mark.skipif(
    not IS_BUILT or IS_SANITIZED, reason="it is about the programs of a plain build (BRAID_BUILD)"
)

PYTHON = {"braid-run": "braid.torch.launcher", "braid-plot": "braid.plot.command"}
PROGRAMS = ("braidctl", "braidd", "braid-bench", *PYTHON)
MIGHT_BE_ABSENT = {"bash": False, "zsh": True, "fish": True}
STARTS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
# The prompt is put together by the shell, so it is not what was typed.
PREPARED = {
    "bash": "eval \"$(braidctl completion bash)\"; PS1='now''> '",
    "zsh": "autoload -U compinit; compinit -u -D; eval \"$(braidctl completion zsh)\"; PROMPT='now''> '",
}
TYPED = "braidctl comple\tbas\tbraid-r\t >out"
WAITS = "job = open_job()\nreport(open=True)\nwhile True:\n    time.sleep(0.1)\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    """All programs under their own names."""
    folder = tmp_path_factory.mktemp("bin")
    for name in PROGRAMS:
        if name in PYTHON:
            called = f"PYTHONPATH={REPOSITORY}/python exec {sys.executable} -m {PYTHON[name]}"
        else:
            called = f"exec {BUILD}/bin/{name}"
        (folder / name).write_text(f'#!/bin/sh\n{called} "$@"\n')
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def surroundings(path: str, home: pathlib.Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BRAID", "ZDOT"))}
    return {**kept, "PATH": path, "HOME": str(home), "TERM": "xterm", "LC_ALL": "C.UTF-8", **more}


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        assert MIGHT_BE_ABSENT[shell]
        pytest.skip(f"{shell} is not installed: apt-get install {shell}")


def said(path: str, *words: str) -> list[str]:
    done = ran([shutil.which(words[0], path=path), "__complete", *words[1:]])
    assert (done.returncode, done.stderr) == (0, ""), words
    return done.stdout.splitlines()


def offers(path: str, *words: str) -> set[str]:
    return {line.split("\t")[0] for line in said(path, *words)[1:]}


def helps(path: str, name: str) -> dict[tuple[str, ...], str]:
    """The help of a program and of all of its subcommands, by their words."""
    found, waiting = {}, [()]
    while waiting:
        words = waiting.pop()
        found[words] = ran([shutil.which(name, path=path), *words, "--help"]).stdout
        waiting += [(*words, below) for below in commands_of(found[words])]
    return found


def commands_of(text: str) -> set[str]:
    _, _, below = text.partition("\nSubcommands:\n")
    return {line.split()[0] for line in below.splitlines() if re.match(r"  \w", line)}


def long_options(text: str) -> set[str]:
    lines = re.findall(r"^ +(?:-\w, ?|-\w \S+, )?(--[a-z][a-z_-]+)", text, re.M)
    return set(lines) | set(re.findall(r"^ +-\w,(--[a-z][a-z_-]+)", text, re.M))


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_options_and_commands_are_offered(path, name):
    found = helps(path, name)
    for words, text in found.items():
        own = long_options(text)
        above = {option for at in range(len(words)) for option in long_options(found[words[:at]])}
        assert own <= offers(path, name, *words, "--") <= own | above, words
        if commands := commands_of(text):
            assert commands <= offers(path, name, *words, "")


def test_values_and_files_are_offered(path):
    assert offers(path, "braidctl", "st") == {"status"}
    assert offers(path, "braidctl", "--socket", "/x", "tra") == {"trace"}
    assert said(path, "braidctl", "plan", "--trace", "t") == ["files"]
    assert said(path, "braidctl", "plan", "--trace=t") == ["files"]
    assert said(path, "braidctl", "plan", "--streams", "") == ["words"]
    assert offers(path, "braidctl", "plan", "--format", "") == {"table", "json"}
    assert offers(path, "braidctl", "tune", "--format=j") == {"--format=json"}
    assert offers(path, "braidctl", "plan", "--planner", "mg") == {"mgwfbp"}
    assert offers(path, "braidctl", "simulate", "--planners", "wfbp,mg") == {"wfbp,mgwfbp"}
    assert "--format" in offers(path, "braidctl", "plan", "--trace", "trace.json", "--f")
    assert offers(path, "braidctl", "completion", "fish", "braid-r") == {"braid-run"}
    assert offers(path, "braidd", "--set", "log.l") == {"log.level="}
    assert offers(path, "braid-bench", "all_reduce", "-d", "") >= {"float", "bfloat16"}
    assert offers(path, "braid-bench", "reduce_scatter", "--op", "m") == {"min", "max"}
    assert "--set" in offers(path, "braidd", "--set", "log.level=info", "--")
    assert said(path, "braid-bench", "replay", "--trace", "") == ["files"]
    assert "live" in offers(path, "braid-bench", "replay", "--planner", "")
    assert offers(path, "braid-bench", "all_reduce", "--datatype", "bf") == {"bfloat16"}
    assert said(path, "braid-plot", "-o", "") == ["files"]
    assert said(path, "braid-run", "--nproc-per-node", "2", "tr") == ["files"]
    assert said(path, "braid-run", "train.py", "--n") == ["files"]


def test_every_command_that_prints_data_takes_both_words_for_json(path):
    without = {"top", "trace", "completion"}  # it goes on and on; it is JSON always; it is a script
    for program in ("braidctl", "braid-bench"):
        commands = offers(path, program, "") - without
        assert len(commands) > 5
        for command in commands:
            assert offers(path, program, command, "--json") == {"--json"}, command
            assert offers(path, program, command, "--format=") == {"--format=table", "--format=json"}, command


# Sources the completion, and prints what bash is given for the words of which the last is being typed.
ASK = """
eval "$(braidctl completion bash)"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_braid_complete "$1"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def in_bash(path: str, *words: str, folder: pathlib.Path, **more: str) -> list[str]:
    done = ran(["bash", "--norc", "-c", ASK, "ask", *words], cwd=folder, env=surroundings(path, folder, **more))
    assert (done.returncode, done.stderr) == (0, ""), words
    return done.stdout.split("\n")[:-1]


def test_bash_gets_back_the_part_that_it_took_apart(path, tmp_path):
    (tmp_path / "trace.json").touch()
    assert in_bash(path, "braidctl", "plan", "--trace", "=", "t", folder=tmp_path) == ["trace.json"]
    assert in_bash(path, "braidctl", "plan", "--trace", "=", folder=tmp_path) == ["trace.json"]
    assert in_bash(path, "braidctl", "plan", "--format", "=", "j", folder=tmp_path) == ["json"]
    assert in_bash(path, "braidctl", "plan", "--format", "=", folder=tmp_path) == ["table", "json"]
    assert in_bash(path, "braidctl", "place", "--rule", "lbp", ":", "d", folder=tmp_path) == ["d", "d2"]
    assert in_bash(path, "braid-plot", "tr", folder=tmp_path) == ["trace.json"]
    assert in_bash(path, "braidctl", "plan", "--nothing", folder=tmp_path) == [""]


def test_names_of_jobs_are_offered_and_command_nothing(path, tmp_path):
    with SingleDaemon() as daemon:
        for name in ("train-7", "evil $(touch pwned)"):
            daemon.start(WAITS, job=name)[0].wait_for("open")
        asked = ("--socket", daemon.socket, "explain", "--job")
        assert offers(path, "braidctl", *asked, "") == {"train-7", "evil $(touch pwned)"}
        assert offers(path, "braidctl", *asked, "tr") == {"train-7"}
        own = {"folder": tmp_path, "BRAID_SOCKET": daemon.socket}
        assert in_bash(path, "braidctl", "explain", "--job", "tr", **own) == ["train-7"]
        (evil,) = in_bash(path, "braidctl", "explain", "--job", "evil", **own)
        shown = ran(["bash", "-c", f"printf %s {evil}"], cwd=tmp_path)
        assert shown.stdout == "evil $(touch pwned)"
        assert not (tmp_path / "pwned").exists()
    assert offers(path, "braidctl", "--socket", "/no/daemon", "explain", "--job", "") == set()


def type_into(shell: str, lines: list[str], environment: dict[str, str], folder: pathlib.Path) -> str:
    """Types lines into a shell at a terminal, each at its prompt but the first, and waits for the shell's end."""
    own, of_shell = pty.openpty()
    process = subprocess.Popen(
        STARTS[shell], stdin=of_shell, stdout=of_shell, stderr=of_shell, cwd=folder, env=environment,
        start_new_session=True,
    )  # fmt: skip
    os.close(of_shell)
    seen, waiting = b"", [line + "\n" for line in lines]
    end = time.monotonic() + PATIENCE_S
    try:
        os.write(own, waiting.pop(0).encode())
        while waiting or process.poll() is None:
            assert time.monotonic() < end, seen.decode(errors="replace")
            if not select.select([own], [], [], 0.1)[0]:
                continue
            try:
                seen += os.read(own, 1 << 16)
            except OSError:  # the shell has closed its terminal
                break
            if waiting and seen.count(b"now> ") == len(lines) - len(waiting):
                os.write(own, waiting.pop(0).encode())
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()
        os.close(own)
    return seen.decode(errors="replace")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_tab_completes_what_is_typed(path, tmp_path, shell):
    needs(shell)
    seen = type_into(shell, [PREPARED[shell], TYPED, "exit"], surroundings(path, tmp_path), tmp_path)
    expected = ran([BRAIDCTL, "completion", "bash", "braid-run"]).stdout
    assert (tmp_path / "out").read_text() == expected, seen


def test_fish_offers_words_with_what_they_mean(path, tmp_path):
    needs("fish")
    (tmp_path / "trace.json").touch()

    def offered(typed: str) -> list[str]:
        source = f'braidctl completion fish | source; complete -C "{typed}"'
        done = ran(["fish", "--no-config", "-c", source], cwd=tmp_path, env=surroundings(path, tmp_path))
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    assert offered("braidctl stat") == ["status\tprint version, rails, links and jobs"]
    assert offered("braidctl plan --planner mg") == ["mgwfbp"]
    assert offered("braidctl plan --format=j") == ["--format=json"]
    assert offered("braidctl plan --trace tr")[0].split("\t")[0] == "trace.json"
    assert offered("braidctl plan --trace=tr")[0].split("\t")[0] == "--trace=trace.json"
    assert offered("braidd --set log.l") == ["log.level="]


def test_zsh_loads_the_file_of_a_package(path, tmp_path):
    """Files of vendor-completions are functions that zsh loads when they are needed."""
    needs("zsh")
    (tmp_path / "_braidctl").write_text(ran([BRAIDCTL, "completion", "zsh", "braidctl"]).stdout)
    environment = surroundings(path, tmp_path, FPATH=f"{tmp_path}:{zsh_functions()}")
    lines = ["autoload -U compinit; compinit -u -D; PROMPT='now''> '", TYPED, "exit"]
    seen = type_into("zsh", lines, environment, tmp_path)
    assert (tmp_path / "out").read_text().startswith("# bash completion for braid-run\n"), seen


def zsh_functions() -> str:
    return ran(["zsh", "-f", "-c", "print -r -- $FPATH"]).stdout.strip()
