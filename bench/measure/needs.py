# SPDX-License-Identifier: Apache-2.0
"""What a run needs. Each function returns a text for each thing that is missing: what it is, and how to get it."""

import os
import shutil
import subprocess
from collections.abc import Iterable

from .paths import DIGITS, FASHION_MNIST, VENV_PYTHON

_PROBE_TIMEOUT_S = 60
DATASETS = {
    "digits": (DIGITS, "run scripts/setup --digits"),
    "fashion-mnist": (
        os.path.join(FASHION_MNIST, "train-images-idx3-ubyte.gz"),
        "run apt-get install dataset-fashion-mnist",
    ),
}


def files(paths: Iterable[str], advice: str = "build the project, or give --build (or another --before)") -> list[str]:
    return [f"{path} is missing: {advice}" for path in paths if not os.access(path, os.R_OK)]


def dataset(name: str) -> list[str]:
    path, advice = DATASETS[name]
    return files([path], advice)


def programs(**packages: str) -> list[str]:
    """By program the package that has it."""
    missing = [package for program, package in packages.items() if shutil.which(program) is None]
    names = " ".join(missing)
    return [f"not installed: {names}; run: apt-get install {names}"] if missing else []


def torch() -> list[str]:
    return [] if has_module(VENV_PYTHON, "torch") else ["torch is not in build/venv: run scripts/setup"]


def has_module(python: str, name: str) -> bool:
    question = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{name}') is None)"
    try:
        done = subprocess.run(
            [python, "-c", question], capture_output=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
