# SPDX-License-Identifier: Apache-2.0
"""What the systems and the data need, asked before anything is started."""

import argparse
import os
import subprocess

from compare_lib.errors import CompareError
from compare_lib.requirements import VENV_PYTHON, has_module

from .paths import DIGITS, FASHION_MNIST
from .systems import POWER_SGD, System

DATA = {
    "digits": (DIGITS, "run scripts/setup --digits"),
    "fashion-mnist": (
        os.path.join(FASHION_MNIST, "train-images-idx3-ubyte.gz"),
        "run apt-get install dataset-fashion-mnist",
    ),
}
_PROBE_TIMEOUT_S = 60


def check(options: argparse.Namespace) -> None:
    """Raises an error that names all that is missing or wrong."""
    wrong = []
    if not has_module(VENV_PYTHON, "torch"):
        wrong.append("torch is not in build/venv: run scripts/setup")
    path, advice = DATA[options.dataset]
    if not os.access(path, os.R_OK):
        wrong.append(f"{path} is missing: {advice}")
    if options.braid is not None:
        needed = [options.braid.program(name) for name in ("braidd", "braid-bench")]
        missing = [path for path in [*needed, options.braid.library] if not os.access(path, os.R_OK)]
        wrong += [f"{path} is missing: build the project, or give --build" for path in missing]
        if not missing:
            bench = options.braid.program("braid-bench")
            wrong += filter(None, (_objection(bench, system) for system in options.systems))
    if wrong:
        raise CompareError("; ".join(wrong))


def _objection(bench: str, system: System) -> str:
    """What braid says of a codec that it does not take."""
    if not system.codec or system.codec.partition(":")[0] == POWER_SGD:
        return ""  # PowerSGD is made by trainers, who object themselves.
    argv = [bench, "codecs", "--bytes", "4KiB", "--repeats", "1", "--codec", system.codec]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{system.text}: braid-bench does not answer"
    return "" if done.returncode == 0 else f"{system.text}: {done.stderr.strip()}"
