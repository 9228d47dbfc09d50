# SPDX-License-Identifier: Apache-2.0
"""A second user of the machine: nobody, who may open the cluster's sockets and nothing else."""

import contextlib
import functools
import json
import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from braid_build import BRAIDCTL, PATIENCE_S, python, trainer_environment
from real_cluster import Cluster, Trainer

NEIGHBOUR = str(pathlib.Path(__file__).resolve().parent / "neighbour.py")

NOBODY_UID = 65534
NOBODY = ["setpriv", f"--reuid={NOBODY_UID}", f"--regid={NOBODY_UID}", "--clear-groups"]
# The group that the daemons must give their sockets to for nobody to be let in.
GROUP_SETTING = "client.group=nogroup"


@functools.cache
def can_become_nobody() -> bool:
    """Whether nobody reaches the build's programs, the interpreter and the package."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return False
    return all(
        subprocess.run(
            [*NOBODY, *argv], capture_output=True, cwd="/", timeout=PATIENCE_S, check=False,
            env={**os.environ, **trainer_environment()},
        ).returncode == 0
        for argv in ([BRAIDCTL, "--help"], [*nobodys_python(), NEIGHBOUR, "", "0"])
    )  # fmt: skip


def nobodys_python() -> list[str]:
    """The system's: that of a virtual environment may have parts that are root's alone."""
    return [*python()[:-1], "/usr/bin/python3"]


def start_neighbour(
    cluster: Cluster,
    source: str,
    argument=None,
    environment: dict[str, str] | None = None,
    on_node: int = 0,
) -> Trainer:
    """Runs `source`, in neighbour.py's words, as nobody. The first node is where jobs meet."""
    node = cluster.nodes[on_node]
    master = cluster.nodes[0].address
    own = {"MASTER_ADDR": master, "BRAID_SOCKET": node.socket, **(environment or {})}
    argv = [*NOBODY, *nobodys_python(), NEIGHBOUR, source, json.dumps(argument)]
    started = Trainer(node, on_node, argv, {**os.environ, **trainer_environment(), **own})
    cluster.trainers.append(started)
    return started


needs_nobody = pytest.mark.skipif(
    not can_become_nobody(), reason="cannot run the build's programs as another user"
)


@contextlib.contextmanager
def way_opened(path: str) -> Iterator[None]:
    """Everybody may pass through the folders that lead to `path`, for a while.

    The folder of all clusters stays open: tests that run at the same time may need it, too.
    """
    closed = [folder for folder in pathlib.Path(path).parents if not folder.stat().st_mode & 0o001]
    modes = {folder: folder.stat().st_mode & 0o7777 for folder in closed}
    try:
        for folder, mode in modes.items():
            folder.chmod(mode | 0o001)
        yield
    finally:
        for folder, mode in modes.items():
            if not folder.name.startswith("braid-cluster"):
                folder.chmod(mode)
