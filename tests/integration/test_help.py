# SPDX-License-Identifier: Apache-2.0
"""Man pages and completions have what the programs have: every option, subcommand and key."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from braid_build import BUILD, IS_BUILT, IS_SANITIZED, REPOSITORY, ran

pytestmark = pytest.mark.skipif(
    not IS_BUILT or IS_SANITIZED, reason="it is about the help of a plain build (BRAID_BUILD)"
)

PAGES = {"braidd.8", "braidctl.1", "braid-run.1", "braid-plot.1", "braid-bench.1", "braid-cluster.1", "braidd.yaml.5"}
PYTHON = {"braid-run": "braid.torch.launcher", "braid-plot": "braid.plot.command"}


def run(*argv, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    own = {"LC_ALL": "C.UTF-8", "PYTHONPATH": str(REPOSITORY / "python")}
    return ran([str(word) for word in argv], env={**os.environ, **own, **(environment or {})})


def made_by(script: str, folder: pathlib.Path) -> pathlib.Path:
    done = run(REPOSITORY / "scripts" / script, "--bin", BUILD / "bin", "--output", folder)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> pathlib.Path:
    return made_by("man-pages", tmp_path_factory.mktemp("man"))


@pytest.fixture(scope="module")
def completions(tmp_path_factory) -> pathlib.Path:
    return made_by("completions", tmp_path_factory.mktemp("completions"))


def helps(name: str) -> dict[tuple[str, ...], str]:
    """The help of a program and of all of its subcommands, by their words."""
    start = [sys.executable, "-m", PYTHON[name]] if name in PYTHON else [BUILD / "bin" / name]
    found, waiting = {}, [()]
    while waiting:
        words = waiting.pop()
        found[words] = run(*start, *words, "--help").stdout
        _, _, below = found[words].partition("\nSubcommands:\n")
        waiting += [(*words, line.split()[0]) for line in below.splitlines() if re.match(r"  \w", line)]
    return found


def long_options(text: str) -> set[str]:
    """Those of the lines on which an option begins, in help and in man pages alike."""
    lines = re.findall(r"^ +(?:-\w, ?|-\w \S+, )?(--[a-z][a-z-]+)", text, re.M)
    return set(lines) | {option for option in re.findall(r"^ +-\w,(--[a-z][a-z-]+)", text, re.M)}


@pytest.mark.parametrize(
    "name, section", [("braidd", 8), ("braidctl", 1), ("braid-run", 1), ("braid-plot", 1), ("braid-bench", 1)]
)
def test_a_page_has_all_options_and_subcommands(pages, name, section):
    page = (pages / f"{name}.{section}").read_text(encoding="utf-8").replace("\\-", "-")
    for words, text in helps(name).items():
        part = page
        if words:
            assert f"\n.SS {' '.join(words)}\n" in page
            part = page.split(f"\n.SS {' '.join(words)}\n")[1].split("\n.S")[0]
        options = long_options(text) - ({"--help"} if words else set())
        assert options or words, text
        assert options <= set(re.findall(r"\\fB(?:-\w\\fR, \\fB)?(--[a-z-]+)\\fR", part)), words


def test_the_page_of_the_configuration_has_all_keys(pages):
    page = (pages / "braidd.yaml.5").read_text(encoding="utf-8")
    document = (REPOSITORY / "docs" / "configuration.md").read_text(encoding="utf-8")
    keys = re.findall(r"^\| `(\w+\.\w+)` \|", document, re.M)  # a unit test holds these against the key table
    assert len(keys) > 30
    assert re.findall(r"^\.B (\w+\.\w+)$", page, re.M) == keys


def test_pages_are_well_formed(pages):
    assert {path.name for path in pages.iterdir()} == PAGES
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("man and groff are not installed")
    for page in pages.iterdir():
        done = run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page, environment={"MANWIDTH": "80"})
        assert (done.returncode, done.stderr) == (0, ""), page.name


# Sources the completion, and prints what it offers for the words of which the last is being typed.
ASK = """
source "$1"; shift
function=$(complete -p "$1" | sed 's/.*-F \\([^ ]*\\).*/\\1/')
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
[[ -z $PROGRAM ]] || COMP_WORDS[0]=$PROGRAM
"$function"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(completions: pathlib.Path, *words: str, program: str = "", folder: pathlib.Path | None = None) -> set[str]:
    done = ran(
        ["bash", "--norc", "-c", ASK, "ask", str(completions / words[0]), *words],
        cwd=folder, env={**os.environ, "PROGRAM": program},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), words
    return set(done.stdout.split())


@pytest.mark.parametrize("name", ["braidd", "braidctl", "braid-run", "braid-plot", "braid-bench"])
def test_all_options_and_subcommands_are_offered(completions, name):
    for words, text in helps(name).items():
        assert offered(completions, name, *words, "--") == long_options(text), words
        _, _, below = text.partition("\nSubcommands:\n")
        commands = {line.split()[0] for line in below.splitlines() if re.match(r"  \w", line)}
        if commands:
            assert offered(completions, name, *words, "") == commands


def test_values_are_offered(completions, tmp_path):
    (tmp_path / "trace.json").touch()
    files = {"folder": tmp_path}
    assert offered(completions, "braidctl", "st") == {"status"}
    assert offered(completions, "braidctl", "--socket", "/x", "tra") == {"trace"}
    assert offered(completions, "braidctl", "plan", "--trace", "t", **files) == {"trace.json"}
    assert offered(completions, "braidctl", "plan", "--trace", "=", "t", **files) == {"trace.json"}
    assert offered(completions, "braidctl", "plan", "--trace", "=", **files) == {"trace.json"}
    assert offered(completions, "braidctl", "plan", "--streams", "") == set()
    assert offered(completions, "braidctl", "plan", "--format", "") == {"table", "json"}
    assert "mgwfbp" in offered(completions, "braidctl", "plan", "--planner", "m")
    assert offered(completions, "braid-plot", "tr", **files) == {"trace.json"}
    assert offered(completions, "braidctl", "tune", "--format", "") == {"table", "json"}
    assert "--format" in offered(completions, "braidctl", "plan", "--trace", "trace.json", "--f")
    assert offered(completions, "braidd", "--set", "log.l") == {"log.level="}
    assert offered(completions, "braidd", "--set", "log.level", "=") == set()
    assert "--set" in offered(completions, "braidd", "--set", "log.level", "=", "info", "--")
    assert offered(completions, "braid-bench", "allreduce", "--dtype", "b") == {"bfloat16"}
    assert offered(completions, "braid-run", "--nproc-per-node", "2", "tr", **files) == {"trace.json"}
    assert offered(completions, "braid-run", "trace.json", "--n") == set()
