# SPDX-License-Identifier: Apache-2.0
"""Man pages have what the programs have: every option, subcommand and key. All programs take their arguments alike."""

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


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("man")
    done = run(REPOSITORY / "scripts" / "man-pages", "--bin", BUILD / "bin", "--output", folder)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


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


# What only others start: a package manager, Slurm, a test run.
_STARTED_BY_OTHERS = (
    ".ci/", "tests/", "packaging/deb/braidd.", "packaging/deb/rules", "packaging/slurm/", "bench/measure/",
    "scripts/check_lib/",
)  # fmt: skip


def programs_of_the_tree() -> list[str]:
    listed = ran(["git", "-C", REPOSITORY, "ls-files", "--stage"]).stdout.splitlines()
    paths = [line.split("\t")[1] for line in listed if line.startswith("100755 ")]
    return [path for path in paths if not path.startswith(_STARTED_BY_OTHERS)]


@pytest.mark.parametrize("path", programs_of_the_tree())
def test_a_program_of_the_tree_has_help_and_refuses_what_it_does_not_know(path):
    helped = run(REPOSITORY / path, "--help")
    assert (helped.returncode, helped.stderr) == (0, ""), path
    assert len(helped.stdout.splitlines()) >= 2
    refused = run(REPOSITORY / path, "--no-such-option")
    assert (refused.returncode, refused.stdout) == (2, ""), path
    assert "Traceback" not in refused.stderr and refused.stderr.strip() != ""


@pytest.mark.parametrize("name", ["braidd", "braidctl", "braid-bench", *PYTHON])
def test_an_installed_program_has_its_version_and_refuses_what_it_does_not_know(name):
    start = [sys.executable, "-m", PYTHON[name]] if name in PYTHON else [BUILD / "bin" / name]
    version = re.search(r"^project\(braid VERSION ([\d.]+)", (REPOSITORY / "CMakeLists.txt").read_text(), re.M)[1]
    assert run(*start, "--version").stdout == f"{name} {version}\n"
    refused = run(*start, "--verison")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "there is no option '--verison' here; did you mean '--version'?" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def long_options(text: str) -> set[str]:
    """Those of the lines on which an option begins, in help and in man pages alike."""
    lines = re.findall(r"^ +(?:-\w, ?|-\w \S+, )?(--[a-z][a-z_-]+)", text, re.M)
    return set(lines) | {option for option in re.findall(r"^ +-\w,(--[a-z][a-z_-]+)", text, re.M)}


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
        assert options <= set(re.findall(r"\\fB(?:-\w\\fR, \\fB)?(--[a-z_-]+)\\fR", part)), words


def test_the_reference_has_all_commands():
    table = (REPOSITORY / "docs" / "reference.md").read_text(encoding="utf-8").partition("\n## Commands\n")[2]
    cells = re.findall(r"^\| (`braid.*?) \|", table.partition("\n### ")[0], re.M)
    programs, asked = set(), set()
    for cell in cells:
        first, *others = re.findall(r"`([^`]+)`", cell)
        name, _, command = first.partition(" ")
        programs.add(name)
        asked |= {one.split()[0] for one in (command, *others) if one}
    assert programs == {page.partition(".")[0] for page in PAGES}
    assert asked == {words[0] for words in helps("braidctl") if words}


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
