# SPDX-License-Identifier: Apache-2.0
"""What the systems need, asked before anything is started."""

import argparse
import os
import shutil
import subprocess

from . import mpi
from .errors import CompareError
from .paths import ROOT, Installation

VENV_PYTHON = os.path.join(ROOT, "build", "venv", "bin", "python")
_PROBE_TIMEOUT_S = 60
_WHAT_TO_DO = "build the project, or give --build (or another --before)"


def check(options: argparse.Namespace) -> None:
    """Raises an error that names all that is missing, and how to get it."""
    packages, other = [], []
    if wants_wire(options) and shutil.which("iperf3") is None:
        packages.append("iperf3")
    for system in options.systems:
        if (library := mpi.LIBRARIES.get(system)) and (missing := _missing_of(library)):
            other.append(f"{system} needs {', '.join(missing)}: run {library.install}")
    if ("gloo" in options.systems or options.through == "torch") and not has_module(VENV_PYTHON, "torch"):
        other.append("torch is not in build/venv: run scripts/setup")
    # Without braid among the systems the cluster needs no daemons.
    needed = [path for braid in options.installations.values() for path in _files_of(braid, options.through)]
    for path in needed:
        if not os.access(path, os.R_OK):
            other.append(f"{path} is missing: {_WHAT_TO_DO}")
    if packages:
        names = " ".join(packages)
        other.append(f"not installed: {names}; run: apt-get install {names}")
    if other:
        raise CompareError("; ".join(other))


def _files_of(braid: Installation, through: str | None) -> list[str]:
    files = [braid.program("braidd"), braid.program("braid-bench")]
    if through == "torch":
        files += [braid.library, os.path.join(braid.python, "braid", "torch", "__init__.py")]
    return files


def wants_wire(options: argparse.Namespace) -> bool:
    return options.nodes > 1 and not options.no_wire


def _missing_of(library: mpi.Library) -> list[str]:
    missing = [] if shutil.which(library.mpirun) else [library.mpirun]
    modules = [name for name in ("numpy", "mpi4py") if not has_module(library.python, name)]
    return missing + [f"{library.python} with {name}" for name in modules]


def has_module(python: str, name: str) -> bool:
    question = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{name}') is None)"
    try:
        done = subprocess.run(
            [python, "-c", question], capture_output=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
