# SPDX-License-Identifier: Apache-2.0
"""The workers of bench/compare: what they are told, and what is said of those that fail."""

import os
import sys

import pytest
from compare_tool import COMPARE
from compare_lib import figures
from compare_lib.control import Group
from compare_lib.errors import Deadline, SystemFailed
from compare_lib.programs import Program

PATIENCE_S = 30
# A peer whose all-reduce takes as many milliseconds as its rank, and breaks at the size 8.
WORKER = """
import os, sys, time
from compare_lib.worker import Peer, serve
class Fake(Peer):
    rank = int(os.environ["RANK"])
    versions = {"fake": "1"}
    def prepare(self, case):
        if case.bytes == 8:
            sys.exit("cannot do that")
        return lambda: time.sleep(self.rank / 1e3)
    def barrier(self): pass
serve(Fake())
"""


@pytest.fixture
def group(tmp_path):
    path = str(tmp_path / "control")
    made = Group(path)
    env = {**os.environ, "BRAID_COMPARE_CONTROL": path, "PYTHONPATH": os.path.dirname(COMPARE)}
    programs = [Program([sys.executable, "-c", WORKER], {**env, "RANK": str(rank)}) for rank in (0, 3)]
    said = made.gather(programs, 2, Deadline(PATIENCE_S))
    assert {one["rank"] for one in said} == {0, 3} and said[0]["versions"] == {"fake": "1"}
    yield made
    made.close()


def test_workers_measure_what_they_are_told(group):
    for size in (4, 1000):
        task = {"case": {"bytes": size}, "warmup": 1, "iterations": 3}
        assert group.ask(task, Deadline(PATIENCE_S)) == [{"warm": True}] * 2
        answers = group.ask({"go": True}, Deadline(PATIENCE_S))
        slowest = figures.slowest([answer["seconds"] for answer in answers])
        assert len(slowest) == 3 and min(slowest) >= 0.003


def test_the_last_words_of_a_worker_are_told(group):
    with pytest.raises(SystemFailed, match="cannot do that"):
        group.ask({"case": {"bytes": 8}, "warmup": 1, "iterations": 3}, Deadline(PATIENCE_S))


def test_a_worker_that_does_not_answer_is_not_waited_for(group):
    with pytest.raises(SystemFailed, match="waited 0.3 s"):
        group.ask({"case": {"bytes": 4}, "warmup": 10**9, "iterations": 1}, Deadline(0.3))
    for program in group._programs:  # they would count to a thousand million
        program.stop(grace_s=0)
