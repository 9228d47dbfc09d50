# SPDX-License-Identifier: Apache-2.0
"""The commands braidd, braidctl and braid-bench of a wheel: each becomes the program of its name, in the folder bin."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")


def braidd() -> NoReturn:
    _become("braidd")


def braidctl() -> NoReturn:
    _become("braidctl")


def braid_bench() -> NoReturn:
    _become("braid-bench")


def _become(name: str) -> NoReturn:
    # The interpreter ignores these, and what is ignored stays so in the program that follows.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    program = os.path.join(_FOLDER, name)
    try:
        os.execv(program, [name, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: {program} cannot be started: {error.strerror}; install the wheel anew")
