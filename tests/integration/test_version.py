# SPDX-License-Identifier: Apache-2.0
"""The version: scripts/version knows every place that names it, and programs say it."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from braid_build import BUILD, IS_BUILT, PATIENCE_S, REPOSITORY, ran

PROGRAM = REPOSITORY / "scripts" / "version"
# What was, and examples of data that tests make up.
NAMES_IT_FOR_GOOD = re.compile(r"CHANGELOG\.md|packaging/deb/(changelog|libbraid0\.symbols)|tests/.*")


def version() -> str:
    done = ran([PROGRAM])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def copy(tmp_path) -> pathlib.Path:
    """The checkout's files that are text, without tests."""
    listed = subprocess.run(
        ["git", "-C", REPOSITORY, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    if listed.returncode != 0:
        pytest.skip(f"this is no checkout: {listed.stderr.strip()}")
    for path in filter(None, listed.stdout.split("\0")):
        source = REPOSITORY / path
        is_text = source.is_file() and not source.is_symlink() and not path.endswith((".png", ".svg"))
        if is_text and not path.startswith("tests/"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, tmp_path / path)
    return tmp_path


def places_of(text: str, root: pathlib.Path) -> set[str]:
    """Files that have it, as a whole version and not as a part of another number."""
    whole = re.compile(rf"(?<![\d.]){re.escape(text)}(?![\d]|\.\d)".encode())
    files = [path for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)) for path in files if whole.search(path.read_bytes())}


def test_all_places_have_one_version_and_no_file_has_it_besides(copy):
    old = version()
    before = {path for path in places_of(old, copy) if not NAMES_IT_FOR_GOOD.fullmatch(path)}
    done = ran([PROGRAM, "--root", copy, "--set", "9.8.7"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "9.8.7\n", "")
    assert before and places_of("9.8.7", copy) == before | {"packaging/deb/changelog"}
    assert {path for path in places_of(old, copy) if not NAMES_IT_FOR_GOOD.fullmatch(path)} == set()
    changelog = (copy / "packaging/deb/changelog").read_text(encoding="utf-8")
    assert changelog.startswith("braid (9.8.7) unstable") and f"\nbraid ({old}) unstable" in changelog


def test_a_place_with_another_version_is_named(copy):
    chart = copy / "packaging" / "helm" / "braid" / "Chart.yaml"
    chart.write_text(re.sub(r"^version: .*$", "version: 0.0.7", chart.read_text(), flags=re.M), encoding="utf-8")
    done = ran([PROGRAM, "--root", copy])
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert re.fullmatch(rf"packaging/helm/braid/Chart\.yaml:\d+: 0\.0\.7, and CMakeLists\.txt has {version()}", line)
    chart.write_text("name: braid\n", encoding="utf-8")
    gone = ran([PROGRAM, "--root", copy])
    assert gone.returncode == 1 and "Chart.yaml: has no version where it had one" in gone.stderr


def test_the_python_package_has_it():
    said = ran([sys.executable, "-c", "import braid; print(braid.__version__)"], cwd=REPOSITORY / "python")
    assert said.stdout.strip() == version(), said.stderr


@pytest.mark.skipif(not IS_BUILT, reason="the programs are not built (BRAID_BUILD)")
@pytest.mark.parametrize("program", ["braidd", "braidctl", "braid-bench"])
def test_programs_say_it(program):
    assert ran([BUILD / "bin" / program, "--version"]).stdout.strip() == f"{program} {version()}"
