# SPDX-License-Identifier: Apache-2.0
"""cmake --install with the prefix of the day: what is started is what was installed, and finds its configuration."""

import os
import re
import shutil
import subprocess

import pytest
from braid_build import BUILD, IS_BUILT, IS_SANITIZED, REPOSITORY, ran

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
    shown = ran(
        [str(tmp_path / started.lstrip("/")), "--check-config", "--config", f"{tmp_path}{etc}/braid/braidd.yaml"]
    )  # fmt: skip
    assert shown.returncode != 2, shown.stderr  # 1: this machine has no group braid


def test_a_configuration_that_is_there_stays(tmp_path):
    install(tmp_path, "/usr")
    own = tmp_path / "etc/braid/braidd.yaml"
    own.write_text("log:\n  level: debug\n")
    install(tmp_path, "/usr")
    assert own.read_text() == "log:\n  level: debug\n"


def test_the_unit_is_started_again_leaves_no_core_and_writes_for_its_user_alone():
    lines = (REPOSITORY / "systemd" / "braidd.service").read_text().splitlines()
    unit = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    assert unit["Restart"] == "on-failure" and float(unit["RestartSec"]) > 0 and unit["StartLimitIntervalSec"] == "0"
    # Nor is it the first to lack memory.
    assert unit["LimitCORE"] == "0" and -1000 < int(unit["OOMScoreAdjust"]) < 0
    assert unit["StateDirectoryMode"] == "0700" and unit["UMask"] == "0077"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_understands_the_unit_and_its_drop_in(tmp_path):
    subprocess.run(["cmake", "--install", str(BUILD), "--prefix", f"{tmp_path}/usr"], check=True, capture_output=True)
    units = tmp_path / "usr/lib/systemd/system"
    (drop_in,) = units.glob("braidd.service.d/*.conf")
    verify = ["env", f"SYSTEMD_UNIT_PATH={units}:", "systemd-analyze", "verify", "--man=no", "braidd.service"]
    assert "braidd" not in ran(verify).stderr
    # It would have said so.
    drop_in.write_text(drop_in.read_text() + "DeviceAllow=char-195 rights\n")
    assert f"{drop_in}:" in ran(verify).stderr


CONSUMER = """\
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C)
find_package(braid 0.1 REQUIRED)
add_executable(consumer consumer.c)
target_link_libraries(consumer braid::braid)
"""
CONSUMER_SOURCE = """\
#include <braid.h>
#include <stdio.h>
int main(void) { return puts(braid_version()) < 0; }
"""


@pytest.mark.skipif(IS_SANITIZED, reason="a plain program cannot load a sanitized library")
def test_cmake_and_pkg_config_find_the_library(tmp_path):
    install(tmp_path, "/opt/braid")
    prefix = tmp_path / "opt" / "braid"
    (description,) = prefix.rglob("braid.pc")
    assert "prefix=/opt/braid\n" in description.read_text()
    own = tmp_path / "consumer"
    own.mkdir()
    (own / "CMakeLists.txt").write_text(CONSUMER)
    (own / "consumer.c").write_text(CONSUMER_SOURCE)
    configure = ["cmake", "-S", own, "-B", own / "build", f"-DCMAKE_PREFIX_PATH={prefix}"]
    for command in (configure, ["cmake", "--build", own / "build"]):
        done = ran(command)
        assert done.returncode == 0, done.stdout + done.stderr
    said = subprocess.run([own / "build" / "consumer"], capture_output=True, text=True, check=True).stdout
    assert said.startswith("0.")
