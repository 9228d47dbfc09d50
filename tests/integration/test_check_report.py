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


def test_a_failure_shows_how_each_trainer_ended(tmp_path):
    (tmp_path / "run.xml").write_text(
        """<testsuite><testcase name="test_sum"><failure message="x">    def test_sum():
E       AssertionError: the job ended
test_sum.py:3: AssertionError
----------------- trainers -----------------
rank 0 on node0, process 11: killed by SIGSEGV; last: RUNNING
rank 1 on node1, process 12: exit code 3; last: rank 0 died

rank 0 on node0, process 11 said:
much</failure></testcase></testsuite>"""
    )
    assert [line.strip() for line in tool("problems", str(tmp_path), "run").splitlines()] == [
        "FAILED run: test_sum", "AssertionError: the job ended", "test_sum.py:3: AssertionError",
        "rank 0 on node0, process 11: killed by SIGSEGV; last: RUNNING",
        "rank 1 on node1, process 12: exit code 3; last: rank 0 died",
    ]  # fmt: skip


def test_a_run_of_ctest(tmp_path):
    (tmp_path / "unit.xml").write_text(CTEST)
    assert tool("count", str(tmp_path / "unit.xml")) == "0 1 1\n"
    said = tool("problems", str(tmp_path), "unit").splitlines()
    assert said[0] == "FAILED unit: Ring.IsFull"
    assert [line.strip() for line in said[1:]] == ["rings_test.cpp:7: Failure", "Expected: full"]


def test_a_run_that_left_no_results_is_told_by_its_log(tmp_path):
    (tmp_path / "build-tsan.log").write_text("".join(f"line {i}\n" for i in range(100)))
    (tmp_path / "build-tsan.xml").write_text("<testsuite>")  # the runner was killed
    said = tool("problems", str(tmp_path), "build tsan").splitlines()
    assert said == ["FAILED build tsan", *[f"    line {i}" for i in range(85, 100)]]


def test_many_failures_are_cut_short(tmp_path):
    case = '<testcase name="t{0}"><failure message="{1}">x</failure></testcase>'
    message = "&#10;".join(["why " * 100] * 30)
    cases = "".join(case.format(i, message) for i in range(60))
    (tmp_path / "run.xml").write_text(f"<testsuite>{cases}</testsuite>")
    said = tool("problems", str(tmp_path), "run").splitlines()
    assert len(said) <= 45 and max(map(len, said)) <= 200
    assert said[0] == "FAILED run: t0" and said[-1] == "and 20 more"
