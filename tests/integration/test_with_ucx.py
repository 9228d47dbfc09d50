# SPDX-License-Identifier: Apache-2.0
"""scripts/with-ucx: a command on another UCX."""

import pathlib
import shutil
import subprocess

import pytest
from braid_build import REPOSITORY, ran

SCRIPT = REPOSITORY / "scripts" / "with-ucx"


def with_ucx(checkout: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess:
    (checkout / "scripts").mkdir()
    script = shutil.copy(SCRIPT, checkout / "scripts")
    return ran([script, *arguments])


def test_the_command_gets_the_libraries_of_that_version(tmp_path, monkeypatch):
    folder = tmp_path / "build" / "ucx-1.22" / "lib"
    folder.mkdir(parents=True)
    (folder / "libucp.so.0").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    done = with_ucx(tmp_path, "1.22", "sh", "-c", 'echo "$LD_LIBRARY_PATH"; exit 3')
    assert done.stdout.strip() == f"{folder}:/elsewhere" and done.returncode == 3


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["1.22", "true"], "run scripts/setup --ucx 1.22"),
        (["1.22"], "usage"),
        (["--help"], "usage"),
    ],
)
def test_what_is_missing_is_named(tmp_path, arguments, complaint):
    done = with_ucx(tmp_path, *arguments)
    assert done.returncode == 2 and complaint in done.stderr
