# SPDX-License-Identifier: Apache-2.0
"""cmake --install with the prefix of the day: what is started is what was installed, and finds its configuration."""

import os
import re
import subprocess

import pytest
from braid_build import BUILD, IS_BUILT

pytestmark = pytest.mark.skipif(not IS_BUILT, reason="braidd is not built (BRAID_BUILD)")


def install(root, prefix: str) -> None:
    subprocess.run(
        ["cmake", "--install", str(BUILD), "--prefix", prefix],
        env={**os.environ, "DESTDIR": str(root)}, check=True, capture_output=True,
    )  # fmt: skip


@pytest.mark.parametrize("prefix, etc", [("/usr", "/etc"), ("/usr/local", "/etc"), ("/opt/braid", "/opt/braid/etc")])
def test_prefixes(tmp_path, prefix, etc):
    install(tmp_path, prefix)
    installed = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    below = prefix.lstrip("/")
    assert {f"{below}/bin/braidd", f"{below}/bin/braidctl", f"{etc.lstrip('/')}/braid/braidd.yaml"} <= installed
    assert all(path.startswith((f"{below}/", "etc/")) for path in installed)
    unit = (tmp_path / below / "lib/systemd/system/braidd.service").read_text()
    (started,) = re.findall(r"^ExecStart=(\S+)$", unit, re.M)
    assert (tmp_path / started.lstrip("/")).stat().st_mode & 0o111
    shown = subprocess.run(
        [str(tmp_path / started.lstrip("/")), "--check-config", "--config", f"{tmp_path}{etc}/braid/braidd.yaml"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr


def test_a_configuration_that_is_there_stays(tmp_path):
    install(tmp_path, "/usr")
    own = tmp_path / "etc/braid/braidd.yaml"
    own.write_text("log:\n  level: debug\n")
    install(tmp_path, "/usr")
    assert own.read_text() == "log:\n  level: debug\n"
