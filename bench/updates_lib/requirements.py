# SPDX-License-Identifier: Apache-2.0
"""What a run needs, asked before anything is started."""

import argparse
import os

from compare_lib.errors import CompareError
from compare_lib.requirements import VENV_PYTHON, has_module
from training_lib.requirements import DATA

from .options import ACCURACY, TIMELINE


def check(options: argparse.Namespace) -> None:
    """Raises an error that names all that is missing."""
    wrong = []
    if not has_module(VENV_PYTHON, "torch"):
        wrong.append("torch is not in build/venv: run scripts/setup")
    if options.command == ACCURACY:
        path, advice = DATA[options.dataset]
        if not os.access(path, os.R_OK):
            wrong.append(f"{path} is missing: {advice}")
    needed = [options.braid.program("braidd"), options.braid.library]
    if options.command == TIMELINE:
        needed.append(options.braid.program("braidctl"))
    for path in needed:
        if not os.access(path, os.R_OK):
            wrong.append(f"{path} is missing: build the project, or give --build")
    if wrong:
        raise CompareError("; ".join(wrong))
