# SPDX-License-Identifier: Apache-2.0
"""scripts/check.sh runs a test that fails once more: what passes then is unstable, and a few of those do no harm."""

import subprocess
import sys

import pytest
from braid_build import REPOSITORY, ran

RUNS = REPOSITORY / "scripts" / "check_lib" / "runs.sh"
CHECK = """
set -uo pipefail
logs=$1
source "$2"
check "first" 60 true
run_tests "toy tests" 60 pytest toys "$3" -m pytest -q @tests@ -p no:cacheprovider --rootdir . \\
  -o junit_family=xunit1 --junitxml @junit@
prepare "after that" 60 true
summarize
"""
TOY = """
import pathlib, pytest
HERE = pathlib.Path(__file__).parent

def fails_first(name):
    seen = HERE / f"{name}.seen"
    if not seen.exists():
        seen.touch()
        pytest.fail(f"{name} was slow")

def test_right(): pass
class TestGroup:
    @pytest.mark.parametrize("name", UNSTABLE)
    def test_unstable(self, name): fails_first(name.replace("/", ""))
"""
WRONG = """
def test_wrong(): assert False, "always"
"""


def check(folder, toy: str) -> subprocess.CompletedProcess:
    (folder / "logs").mkdir()
    (folder / "toys").mkdir()
    (folder / "toys" / "test_toy.py").write_text(toy)
    return ran(
        ["bash", "-c", CHECK, "check", "logs", str(RUNS), sys.executable],
        cwd=folder,
    )  # fmt: skip


def toys(*unstable: str) -> str:
    return TOY.replace("UNSTABLE", repr(list(unstable)))


def test_what_passes_by_itself_is_unstable_and_no_failure(tmp_path):
    done = check(tmp_path, toys("a b/&c"))
    assert done.returncode == 0, done.stdout + done.stderr
    summary = done.stdout.partition("== summary")[2]
    assert "UNSTABLE toy tests: test_unstable[a b/&c]" in summary
    assert "Failed: a b&c was slow" in summary
    assert "by itself it passed:" in summary and "1 passed in" in summary
    assert summary.endswith("3 passed, 0 failed, 0 skipped\n")


def test_what_fails_twice_has_failed(tmp_path):
    done = check(tmp_path, toys("slow") + WRONG)
    assert done.returncode == 1
    summary = done.stdout.partition("== summary")[2]
    assert summary.index("FAILED toy tests: test_wrong") < summary.index("UNSTABLE toy tests: test_unstable")
    assert summary.endswith("3 passed, 1 failed, 0 skipped\n")


def test_more_than_three_unstable_tests_fail_the_check(tmp_path):
    done = check(tmp_path, toys("a", "b", "c", "d"))
    assert done.returncode == 1
    assert "4 tests are unstable, more than 3: they count as failed" in done.stdout
    assert done.stdout.endswith("2 passed, 4 failed, 0 skipped\n")


@pytest.mark.parametrize("toy", ["import nothing_of_this_name\n", "import os\ndef test_dies(): os._exit(3)\n"])
def test_what_is_no_failed_test_is_not_run_again(tmp_path, toy):
    done = check(tmp_path, toy)
    assert done.returncode == 1
    assert "again" not in done.stdout
    assert "FAILED toy tests" in done.stdout and done.stdout.endswith("1 passed, 1 failed, 0 skipped\n")
