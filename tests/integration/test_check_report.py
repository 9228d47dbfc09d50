# SPDX-License-Identifier: Apache-2.0
"""The end of scripts/check.sh tells what failed: from the JUnit files of both runners, or from logs."""

import subprocess
import sys

import pytest
from braid_build import REPOSITORY

TOOL = str(REPOSITORY / "scripts" / "check_lib" / "report.py")
BROKEN = """
import pytest
def test_right(): pass
def test_wrong():
    {"a": 1} == {"a": 2}
    assert 1 + 1 == 3, "arithmetic"
@pytest.mark.skip
def test_left_out(): pass
@pytest.fixture
def torn():
    yield
    raise OSError("not closed")
def test_torn(torn): pass
def test_talkative():
    assert False, "\\n".join(["it prints"] + 30 * [100 * "much "] + ["exit code 139"])
"""
# As ctest writes it.
CTEST = """<testsuite><testcase name="Ring.IsFull" status="fail"><failure message="Failed"/>
<system-out>[ RUN      ] Ring.IsFull
rings_test.cpp:7: Failure
Expected: full
</system-out></testcase><testcase name="Ring.IsOff" status="disabled"/></testsuite>"""


def tool(*arguments: str) -> str:
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def of_pytest(tmp_path):
    (tmp_path / "test_broken.py").write_text(BROKEN)
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}",
         "-o", "junit_family=xunit1",
         "--junitxml", str(tmp_path / "some-run.xml"), str(tmp_path / "test_broken.py")],
        capture_output=True, check=False,
    )  # fmt: skip
    return tmp_path


def test_a_run_of_pytest(of_pytest):
    assert tool("count", str(of_pytest / "some-run.xml")) == "1 3 1\n"
    said = tool("problems", str(of_pytest), "some run").splitlines()
    assert [line for line in said if line.startswith("FAILED")] == [
        "FAILED some run: test_wrong", "FAILED some run: test_torn", "FAILED some run: test_talkative",
    ]  # fmt: skip
    assert said[1] == "    AssertionError: arithmetic"
    assert "test_broken.py:6: AssertionError" in "\n".join(said)
    assert "not closed" in "\n".join(said)
    assert "AssertionError: it prints" in "\n".join(said) and "exit code 139" in "\n".join(said)


def test_a_run_of_ctest(tmp_path):
    (tmp_path / "unit.xml").write_text(CTEST)
    assert tool("count", str(tmp_path / "unit.xml")) == "0 1 1\n"
    said = tool("problems", str(tmp_path), "unit").splitlines()
    assert said[0] == "FAILED unit: Ring.IsFull"
    assert [line.strip() for line in said[1:]] == ["rings_test.cpp:7: Failure", "Expected: full"]
