# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/device_programs, and how many of them are run."""

import os

from braid_build import BUILD, IS_SANITIZED
from trainer_process import Trainer

PROGRAMS = str(BUILD / "bin" / "device_programs")
OUTAGE = str(BUILD / "bin" / "device_outage")
PROGRAM_COUNT = int(os.environ.get("BRAID_DEVICE_PROGRAMS") or (6 if IS_SANITIZED else 30))
OUTAGE_COUNT = int(os.environ.get("BRAID_DEVICE_OUTAGES") or (3 if IS_SANITIZED else 9))
# Far more than one takes.
PROGRAM_S = 60
# The processes have no thread but the fake driver's and libbraid's, and fork() early.
CHILDREN = {"ASAN_OPTIONS": "detect_leaks=0:handle_segv=0"} if IS_SANITIZED else {}


def expect_released(trainer: Trainer, *names: str) -> None:
    """It was told why, its streams went on, it left: and no result was neither a sum nor 0xFF."""
    assert trainer.end() == 0, trainer.output()
    assert "released after" in trainer.output()
    assert any(name in trainer.output() for name in names), trainer.output()
