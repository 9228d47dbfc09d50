# SPDX-License-Identifier: Apache-2.0
"""Commands that the README and the documents print. Those of braidctl and braidd are run as they stand, where no daemon
is; of the others the programs, subcommands and options must exist."""

import functools
import os
import pathlib
import re
import shlex
import sys
from collections.abc import Iterator

import pytest
from braid_build import BUILD, IS_BUILT, IS_SANITIZED, REPOSITORY, ran

pytestmark = pytest.mark.skipif(
    not IS_BUILT or IS_SANITIZED, reason="it is about the programs of a plain build (BRAID_BUILD)"
)

DOCUMENTS = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
RUN = ("braidctl", "braidd")
MODULES = {"braid-run": "braid/torch/launcher.py", "braid-plot": "braid/plot/command.py"}
HELPED = {
    "braid-bench": [BUILD / "bin" / "braid-bench"],
    "braid-cluster": [REPOSITORY / "scripts" / "cluster"],
    **{name: [sys.executable, "-P", REPOSITORY / "python" / path] for name, path in MODULES.items()},
}
FOLDERS = ("scripts/", "bench/", "packaging/")
# Words before a command of ours: of the shell, and of programs that start what follows.
BEFORE = {"do", "then", "export", "sudo", "exec", "time", "srun"}
STARTS_WHAT_FOLLOWS = {"--", "--no-python"}


def blocks(text: str) -> Iterator[str]:
    """Shell commands: whole blocks, and lines with a prompt in blocks that show what a command says."""
    for language, body in re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S):
        if language == "sh":
            yield re.sub(r"<<-?'?(\w+)'?\n.*?^\1$", "", body, flags=re.M | re.S)
        elif language == "":
            yield from re.findall(r"^\$ ((?:.*\\\n)*.*)$", body, re.M)


def simple_commands(block: str) -> Iterator[list[str]]:
    """Words of each, without redirections."""
    text = ""
    for line in block.replace("\\\n", " ").splitlines():
        text += line + "\n"
        lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:  # A quotation goes on in the next line.
            continue
        text = ""
        command: list[str] = []
        is_file = False
        for word in [*words, ";"]:
            if is_file:
                is_file = False
            elif set(word) <= set("<>"):
                is_file = True
            elif set(word) <= set("();|&<>"):
                yield command
                command = []
            else:
                command.append(word)
    assert text == "", f"a quotation has no end: {text}"


def commands_of_ours(words: list[str]) -> Iterator[list[str]]:
    """The command itself, if it is ours, and the one that it starts."""
    while words and (words[0] in BEFORE or re.match(r"\w+=", words[0])):
        words = words[1:]
    if words and words[0] == "scripts/with-ucx":  # VERSION COMMAND
        yield words[:1]
        words = words[2:]
    ends = [place for place, word in enumerate(words) if word in STARTS_WHAT_FOLLOWS]
    for begin, end in zip([0, *(place + 1 for place in ends)], [*ends, len(words)]):
        if words[begin:end] and is_ours(words[begin]):
            yield words[begin:end]


def is_ours(word: str) -> bool:
    return os.path.basename(word) in (*RUN, *HELPED) or word.startswith(FOLDERS)


@functools.cache
def help_of(*argv: str) -> str:
    done = ran([*argv, "--help"])
    assert done.returncode == 0, f"{' '.join(map(str, argv))} --help: {done.stderr}"
    return done.stdout


def options_of(words: list[str]) -> list[str]:
    return [word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)]


def breaches(words: list[str], scratch: pathlib.Path) -> Iterator[str]:
    name = os.path.basename(words[0])
    if name in RUN:
        yield from breaches_of_run(name, [os.path.expandvars(word) for word in words[1:]], scratch)
        return
    if name not in HELPED:
        program = REPOSITORY / words[0]
        if not os.access(program, os.X_OK):
            yield f"there is no program {words[0]}"
            return
        start, given = [program], words[1:]
    else:
        start, given = HELPED[name], words[1:]
    if name == "braid-run":  # what comes after the script is the script's
        given = given[: next((place for place, word in enumerate(given) if word.endswith(".py")), len(given))]
    options = options_of(given)
    known = help_of(*start) if options or name in HELPED else ""
    if name == "braid-bench":
        subcommand = next((word for word in given if not word.startswith("-")), "")
        if not re.search(rf"^  {re.escape(subcommand)} ", known, re.M):
            yield f"{name} has no subcommand '{subcommand}'"
            return
        known += help_of(*start, subcommand)
    for option in options:
        if not re.search(rf"(?<![\w-]){option}(?![\w-])", known):
            yield f"{words[0]} has no option {option}"


def breaches_of_run(name: str, given: list[str], scratch: pathlib.Path) -> Iterator[str]:
    if name == "braidd":
        given = [*given, *({"--check-config"} - set(given))]
    environment = {**os.environ, "BRAID_SOCKET": str(scratch / "no.sock"), "HOME": str(scratch)}
    done = ran([BUILD / "bin" / name, *given], cwd=scratch, env=environment)
    # 1: there is no daemon, or not the file that the command before would have made.
    if done.returncode not in (0, 1):
        yield f"{name} {shlex.join(given)} ends with {done.returncode}: {done.stderr.strip()}"


@pytest.fixture
def scratch(tmp_path) -> pathlib.Path:
    """As a checkout looks to a command, without its being written to."""
    for name in ("docs", "traces", "examples"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    return tmp_path


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_are_as_the_programs_take_them(document, scratch):
    text = document.read_text(encoding="utf-8")
    words = [one for block in blocks(text) for command in simple_commands(block) for one in commands_of_ours(command)]
    wrong = [breach for command in words for breach in breaches(command, scratch)]
    assert wrong == []


def test_documents_have_commands_of_every_program():
    texts = [document.read_text(encoding="utf-8") for document in DOCUMENTS]
    commands = [command for text in texts for block in blocks(text) for command in simple_commands(block)]
    names = {os.path.basename(words[0]) for command in commands for words in commands_of_ours(command)}
    assert {"braidd", "braidctl", "braid-bench", "braid-run", "braid-plot", "cluster", "compare"} <= names


@pytest.mark.parametrize(
    "line, said",
    [
        ("braidctl explian --job train", "braidctl explian --job train ends with 2"),
        ("sudo braidctl status --jsn | tee x", "braidctl status --jsn ends with 2"),
        ("braidd --set no.such=1 &", "unknown key"),
        ("A=b build/release/bin/braid-bench allreduce", "braid-bench has no subcommand 'allreduce'"),
        ("scripts/cluster --nodes 2 -- braid-bench all_reduce --size 1", "braid-bench has no option --size"),
        ("torchrun --no-python braid-run --proc-per-node 2 t.py --own", "braid-run has no option --proc-per-node"),
        ("true && bench/compare --nodes 2 --systms braid > x", "bench/compare has no option --systms"),
        ("scripts/no-such", "there is no program scripts/no-such"),
    ],
)
def test_a_wrong_command_is_found(line, said, scratch):
    commands = [words for command in simple_commands(line) for words in commands_of_ours(command)]
    found = [breach for words in commands for breach in breaches(words, scratch)]
    assert len(found) == 1 and said in found[0]
