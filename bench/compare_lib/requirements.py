# SPDX-License-Identifier: Apache-2.0
"""What the systems need, asked before anything is started."""

import argparse
import os
import shutil
import subprocess

from .errors import CompareError
from .places import ROOT

# torch is in the project's environment, mpi4py is a package of the distribution.
VENV_PYTHON = os.path.join(ROOT, "build", "venv", "bin", "python")
SYSTEM_PYTHON = "/usr/bin/python3"
_PROBE_TIMEOUT_S = 60


def check(options: argparse.Namespace) -> None:
    """Raises an error that names all that is missing, and how to get it."""
    packages, other = [], []
    if wants_wire(options) and shutil.which("iperf3") is None:
        packages.append("iperf3")
    if any(is_openmpi(system) for system in options.systems):
        if shutil.which("mpirun") is None:
            packages.append("openmpi-bin")
        if not _has_module(SYSTEM_PYTHON, "mpi4py") or not _has_module(SYSTEM_PYTHON, "numpy"):
            packages.append("python3-mpi4py")
    if "gloo" in options.systems and not _has_module(VENV_PYTHON, "torch"):
        other.append("torch is not in build/venv: run scripts/setup")
    # Without braid among the systems the cluster needs no daemons.
    for name in ("braidd", "braid-bench") if "braid" in options.systems else ():
        path = os.path.join(options.build, "bin", name)
        if not os.access(path, os.X_OK):
            other.append(f"{path} is missing: build the project, or give --build")
    if packages:
        names = " ".join(packages)
        other.append(f"not installed: {names}; run: apt-get install {names}")
    if other:
        raise CompareError("; ".join(other))


def wants_wire(options: argparse.Namespace) -> bool:
    return options.nodes > 1 and not options.no_wire


def is_openmpi(system: str) -> bool:
    return system.startswith("openmpi")


def _has_module(python: str, name: str) -> bool:
    question = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{name}') is None)"
    try:
        done = subprocess.run(
            [python, "-c", question], capture_output=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
