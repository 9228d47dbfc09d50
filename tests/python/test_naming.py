# SPDX-License-Identifier: Apache-2.0
"""What jobs of process groups are called."""

from __future__ import annotations

import re
import sys

import pytest
from cluster_runs import run

pytest.importorskip("torch.distributed")

from braid.torch.group import creation, naming
from braid.torch.group.naming import label_of, wanted_name


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    for name in ("BRAID_JOB", "SLURM_JOB_NAME", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "argv", ["runs/my train!.py", "--epochs", "3"])
    monkeypatch.setattr(naming, "_run", "")  # what this process's other tests have made


def test_people_name_the_run_then_slurm_then_the_script(monkeypatch):
    assert wanted_name("") == "my_train"
    monkeypatch.setattr(sys, "argv", ["/where/package/__main__.py"])
    assert wanted_name("") == "package"
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert wanted_name("") == "c"
    monkeypatch.setenv("SLURM_JOB_NAME", "big model")
    assert wanted_name("") == "c"  # of a shell that is in no job
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    assert wanted_name("") == "big_model-42"
    monkeypatch.setenv("BRAID_JOB", "Mine:\n1")
    assert wanted_name("") == "Mine:_1"
    monkeypatch.setenv("BRAID_JOB", "x" * 300)
    assert wanted_name("tp0") == "x" * 50 + "/tp0"


def test_other_groups_of_a_run_are_called_after_its_default_group(monkeypatch):
    assert wanted_name("tp0") == "my_train/tp0"
    monkeypatch.setattr(naming, "_run", "")  # undone at the end
    naming.remember("my_train/dp0", "dp0")
    assert wanted_name("tp0") == "my_train/tp0"
    naming.remember("my_train-2", "")
    assert wanted_name("tp0") == "my_train-2/tp0" and wanted_name("") == "my_train"


def test_other_groups_have_torchs_description_and_their_first_rank():
    assert label_of("default_pg", []) == ""
    assert label_of("mesh_tp", [4, 5]) == "tp4"
    assert label_of("undefined", [1, 3]) == label_of(None, [1, 3]) == "group1"
    assert label_of("default_pg:split:0", [2, 3]) == "default_pg_split_0-2"


def test_where_no_daemon_gives_a_name_it_gets_a_part_that_no_other_has(monkeypatch, tmp_path):
    monkeypatch.setenv("BRAID_SOCKET", str(tmp_path / "none"))
    assert re.fullmatch("my_train-[0-9a-f]{4}", creation._own_name("my_train"))


def test_the_names_of_a_run():
    results = run("names.py", ranks_per_node=4).expect(4)
    names = {result["rank"]: result["names"] for result in results}
    for rank, own in names.items():
        assert own["default"] == "names"
        assert own["tp"] == f"names/tp{rank // 2 * 2}"
        assert own["again"] == "names/group0" and own["twin"] == "names/group0-2"
