# SPDX-License-Identifier: Apache-2.0
"""The programs that are documented, and how they are asked for their help."""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from .parse import Command, HelpError, parse

TREE = pathlib.Path(__file__).resolve().parents[2]
_PATIENCE_S = 60


def version() -> str:
    return re.search(r"^project\(braid VERSION ([\d.]+)", (TREE / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


def _output(argv: list[str], folder: str | pathlib.Path | None = None) -> str:
    environment = {**os.environ, "COLUMNS": "2000", "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            argv, env=environment, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=_PATIENCE_S, check=False,
        )  # fmt: skip
    except OSError as error:
        raise HelpError(f"{argv[0]} cannot be started: {error.strerror}; build it, or give --bin FOLDER") from None
    except subprocess.TimeoutExpired:
        raise HelpError(f"{' '.join(argv)} did not end within {_PATIENCE_S} s") from None
    if done.returncode != 0:
        raise HelpError(f"{' '.join(argv)} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _with_commands(argv: list[str], words: list[str]) -> Command:
    command = parse(_output([*argv, *words[1:], "--help"]), words)
    command.commands = [_with_commands(argv, below.words) for below in command.commands]
    return command


_PYTHON = {"braid-run": "braid.torch.launcher", "braid-plot": "braid.plot.command"}


def _of_package(name: str) -> Command:
    return parse(_output([sys.executable, "-m", _PYTHON[name], "--help"], folder=TREE / "python"), [name])


def _braid_cluster() -> Command:
    """As an installed one: it speaks of itself and of other programs by the names that they have then."""
    with tempfile.TemporaryDirectory() as folder:
        scripts = pathlib.Path(folder) / "share" / "braid-tools" / "scripts"
        scripts.mkdir(parents=True)
        shutil.copy(TREE / "scripts" / "cluster", scripts)
        shutil.copytree(TREE / "scripts" / "cluster_lib", scripts / "cluster_lib")
        return parse(_output([sys.executable, str(scripts / "cluster"), "--help"]), ["braid-cluster"])


@dataclasses.dataclass
class Programs:
    """All programs, those that are compiled in the folder `bin`."""

    bin: pathlib.Path

    def help_of(self, name: str) -> Command:
        if name in _PYTHON:
            return _of_package(name)
        if name == "braid-cluster":
            return _braid_cluster()
        return _with_commands([str(self.bin / name)], [name])

    def configuration(self) -> str:
        """Every key with its meaning and default."""
        return _output([str(self.bin / "braidd"), "--config", "/dev/null", "--print-config"])
