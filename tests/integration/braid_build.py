# SPDX-License-Identifier: Apache-2.0
"""Which build the tests are about: BRAID_BUILD, or build/release."""

import functools
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BRAID_BUILD") or REPOSITORY / "build" / "release")
BRAIDD = str(BUILD / "bin" / "braidd")
BRAIDCTL = str(BUILD / "bin" / "braidctl")
BENCH = str(BUILD / "bin" / "braid-bench")
EXAMPLE_TRAINER = str(BUILD / "bin" / "braid-example-trainer")
LIBRARY = str(BUILD / "lib" / "libbraid.so.0")
IS_BUILT = all(os.path.exists(path) for path in (BRAIDD, BRAIDCTL, BENCH, LIBRARY))


@functools.cache
def sanitizer_runtime() -> str | None:
    """The runtime library that the build's libbraid needs, None for an ordinary build."""
    if not IS_BUILT:
        return None
    linked = subprocess.run(["ldd", LIBRARY], capture_output=True, text=True, check=True).stdout
    found = re.search(r"=> (\S*lib[at]san\.so\S*)", linked)
    return found.group(1) if found else None


IS_SANITIZED = sanitizer_runtime() is not None
# For waits that only keep a broken test from hanging.
PATIENCE_S = 240 if IS_SANITIZED else 90


def trainer_environment() -> dict[str, str]:
    """What a Python trainer needs to use this build's libbraid and the checkout's package."""
    folder = pathlib.Path(__file__).resolve().parent
    environment = {
        "BRAID_LIBRARY": LIBRARY,
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "python"), str(folder)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    if IS_SANITIZED:
        # What the interpreter does not free at its end is no leak of ours.
        options = os.environ.get("ASAN_OPTIONS", "")
        environment["ASAN_OPTIONS"] = f"{options}:detect_leaks=0".lstrip(":")
    return environment


def ran(argv: Sequence[str | os.PathLike], **options: Any) -> subprocess.CompletedProcess[str]:
    """How a program ended, and what it said, which had nothing to read."""
    usual = {"capture_output": True, "text": True, "timeout": PATIENCE_S, "check": False}
    usual |= {} if "input" in options else {"stdin": subprocess.DEVNULL}
    return subprocess.run(argv, **{**usual, **options})


def braidctl(socket: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return ran([BRAIDCTL, "--socket", socket, *arguments])


def python() -> list[str]:
    """The interpreter for trainers. One that was built without the sanitizer needs its runtime
    before anything else; the programs that lead to the interpreter must not get it."""
    runtime = sanitizer_runtime()
    return [sys.executable] if runtime is None else ["env", f"LD_PRELOAD={runtime}", sys.executable]
