# SPDX-License-Identifier: Apache-2.0
"""Finding the programs that a run needs: of this checkout, or of an installation."""

import glob
import os
import shutil

from .errors import ClusterError

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The package braid-tools has these files in PREFIX/share/braid-tools/scripts.
IS_INSTALLED = not os.path.exists(os.path.join(REPOSITORY, "CMakeLists.txt"))


def _find_installed(repository: str, name: str, otherwise: str) -> str:
    helper = os.path.join(repository, "../../libexec/braid", name)
    found = os.path.normpath(helper) if os.access(helper, os.X_OK) else shutil.which(name)
    if found is None:
        raise ClusterError(f"no {name} in PATH: install it, or {otherwise}")
    return found


def find(repository: str, name: str, otherwise: str) -> str:
    """The release build's if there is one, else the newest build's; an error that ends with what
    else would do."""
    if IS_INSTALLED:
        return _find_installed(repository, name, otherwise)
    release = os.path.join(repository, "build/release/bin", name)
    built = glob.glob(os.path.join(repository, "build/*/bin", name))
    if not built:
        raise ClusterError(f"no {name} under build/*/bin: build the project, or {otherwise}")
    return release if release in built else max(built, key=os.path.getmtime)


def find_beside(program: str | None, repository: str, name: str, otherwise: str) -> str:
    """The one in the folder of another program, if that is there."""
    beside = os.path.join(os.path.dirname(program), name) if program else ""
    return beside if os.access(beside, os.X_OK) else find(repository, name, otherwise)
