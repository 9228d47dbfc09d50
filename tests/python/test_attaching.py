# SPDX-License-Identifier: Apache-2.0
"""Ways in for scripts that have never heard of braid, and that nothing changes unasked."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cluster_runs import COLD, run, script

pytest.importorskip("torch")
ENABLED = {"BRAID_ENABLE": "1"}


def assert_ran_on_braid(results: list[dict], *ways: str) -> None:
    total = len(results) ** 2  # Summed in both groups.
    for result in results:
        assert result["got"] == {way: ["braid", "braid", total] for way in ways}
        assert result["name"] == "__main__" and result["path"].endswith("/trainers")


def test_braid_run_puts_braid_under_an_unmodified_script():
    ways = ("gloo", "nccl", "both", "none", "mesh")
    assert_ran_on_braid(run("unmodified.py", *ways, launcher=(script("braid-run"),)).expect(2), *ways)


@pytest.mark.parametrize("way", ["default", "single", "option", "environment"])
def test_braid_run_makes_ddp_hand_over_its_gradients_unless_told_not_to(way):
    launcher = (sys.executable, "-m", "braid.torch.launcher")
    environment = {"environment": {"BRAID_KEEP_BUCKETS": "1"}, "single": {"BRAID_SMALLEST_TENSOR": "0"}}
    results = run(
        "unmodified_ddp.py",
        launcher=(*launcher, "--keep-buckets") if way == "option" else launcher,
        environment=environment.get(way, {}),
    ).expect(2)
    for result in results:
        assert result["planned"] == (4 if way in ("default", "single") else None)
        # Four small gradients are one tensor, and one bucket.
        assert result["tensors"] == {"default": 1, "single": 4}.get(way)
        assert result["buckets"] == (4 if way == "single" else 1)
        assert result["bucket_bytes_cap"] == 25 << 20  # As the script sees it.


def test_the_environment_switch_puts_braid_under_an_unmodified_script():
    results = run("unmodified.py", "nccl", launcher=COLD, environment=ENABLED).expect(2)
    assert_ran_on_braid(results, "nccl")


def test_without_the_switch_an_installed_package_changes_nothing():
    results = run("unmodified.py", "gloo", launcher=COLD, options=("--no-daemons",)).reported(2)
    for result in results:
        assert result["got"] == {"gloo": ["gloo", "gloo", 4.0]} and not result["braid_loaded"]


@pytest.mark.parametrize("with_switch", [True, False], ids=["switch", "braid-run"])
def test_torchrun(with_switch):
    torchrun = (
        sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "2",
    )  # fmt: skip
    # The cluster's rank is the node; torchrun makes the ranks of the trainers.
    rendezvous = "--node-rank $RANK --master-addr $MASTER_ADDR --master-port $MASTER_PORT"
    more = "" if with_switch else f"--no-python {script('braid-run')}"
    done = run(
        "unmodified.py", "gloo", nodes=2, ranks_per_node=1,
        launcher=("sh", "-c", f'exec {" ".join(torchrun)} {rendezvous} {more} "$@"', "sh"),
        environment=ENABLED if with_switch else {},
    )  # fmt: skip
    assert_ran_on_braid(done.expect(4), "gloo")


def test_braid_run_starts_ranks():
    launcher = (script("braid-run"), "--nproc-per-node", "2")
    results = run("unmodified.py", "gloo", ranks_per_node=1, launcher=launcher).expect(2)
    assert_ran_on_braid(results, "gloo")


def test_braid_run_without_ranks_says_how_they_are_started(tmp_path):
    lonely = tmp_path / "lonely.py"
    lonely.write_text("import torch.distributed as dist\ndist.init_process_group('gloo')\n")
    left = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    done = subprocess.run(
        [script("braid-run"), str(lonely)], capture_output=True, text=True, check=False,
        env={name: value for name, value in os.environ.items() if name not in left},
    )  # fmt: skip
    assert done.returncode == 1
    assert "braid-run --nproc-per-node 2 SCRIPT" in done.stderr
    assert "Traceback" not in done.stderr


def test_braid_run_explains_itself():
    done = subprocess.run(
        [script("braid-run"), "--help"], capture_output=True, text=True, check=True
    )
    assert "SCRIPT" in done.stdout and "torchrun" in done.stdout


def test_a_broken_switch_does_not_break_import_torch():
    program = (
        "import braid.torch.attach.substitution as s, sys\n"
        "def broken(): raise ValueError('broken on purpose')\n"
        "s.enable = broken\n"
        "from braid.torch.autoload import autoload\n"
        "autoload()\n"
        "print('still here')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        env={"BRAID_ENABLE": "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
    )  # fmt: skip
    assert done.stdout == "still here\n", done.stderr
    assert "braid is not in use: broken on purpose" in done.stderr
