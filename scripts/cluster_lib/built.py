# SPDX-License-Identifier: Apache-2.0
"""Finding the programs of this checkout that a run needs."""

import glob
import os

from .errors import ClusterError


def find(repository: str, name: str, otherwise: str) -> str:
    """The release build's if there is one, else the newest build's; an error that ends with what
    else would do."""
    release = os.path.join(repository, "build/release/bin", name)
    built = glob.glob(os.path.join(repository, "build/*/bin", name))
    if not built:
        raise ClusterError(f"no {name} under build/*/bin: build the project, or {otherwise}")
    return release if release in built else max(built, key=os.path.getmtime)


def find_beside(program: str | None, repository: str, name: str, otherwise: str) -> str:
    """The one in the folder of another program, if that is there."""
    beside = os.path.join(os.path.dirname(program), name) if program else ""
    return beside if os.access(beside, os.X_OK) else find(repository, name, otherwise)
