# SPDX-License-Identifier: Apache-2.0
"""The container's image: what its Containerfile says, and that the programs find there what they are linked with."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from braid_build import BENCH, BRAIDCTL, BRAIDD, BUILD, IS_BUILT, LIBRARY, PATIENCE_S, REPOSITORY, ran

FOLDER = REPOSITORY / "packaging" / "container"
RUN_STEPS = FOLDER / "run-steps"
# What the base image has anyway: packages without which there is no Debian, and what these depend on.
IN_EVERY_DEBIAN = ("libc6", "libgcc-s1", "libstdc++6", "zlib1g", "liblzma5", "libzstd1", "libcap2")


def show(file: pathlib.Path) -> dict[str, dict]:
    done = ran([RUN_STEPS, "--show", "--file", file])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def last_stage() -> list[tuple[str, str]]:
    *_, last = show(FOLDER / "Containerfile").values()
    return [(name, rest) for _, name, rest in last["steps"]]


def user_of_the_image() -> tuple[int, int]:
    (user,) = [rest for name, rest in last_stage() if name == "USER"]
    uid, _, gid = user.partition(":")
    return int(uid), int(gid)


def runtime_packages() -> set[str]:
    (step,) = [rest for name, rest in last_stage() if name == "RUN" and "apt-get install" in rest]
    return {word for word in re.search(r"install (.*?)&&", step)[1].split() if not word.startswith("-")}


def test_it_is_no_root_and_says_how_it_is_started():
    steps = last_stage()
    names = [name for name, _ in steps]
    assert user_of_the_image() == (7410, 7410)
    assert not {"RUN", "COPY"} & set(names[names.index("USER") :])  # all files are root's
    told = {name: rest for name, rest in steps if name in ("ENTRYPOINT", "VOLUME", "HEALTHCHECK")}
    assert json.loads(told["ENTRYPOINT"]) == ["/usr/bin/braidd"] and json.loads(told["VOLUME"]) == ["/run/braid"]
    assert json.loads(told["HEALTHCHECK"].partition("CMD ")[2]) == ["/usr/bin/braidctl", "status"]


@pytest.mark.skipif(not IS_BUILT, reason="braidd is not built (BRAID_BUILD)")
@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="this is no Debian")
def test_its_packages_have_all_libraries():
    present = {*runtime_packages(), *IN_EVERY_DEBIAN}
    for package in sorted(runtime_packages()):
        depends = ran(["dpkg-query", "-W", "-f", "${Depends}", package])
        assert depends.returncode == 0, f"{package} of the Containerfile is no package here: {depends.stderr}"
        present |= set(re.findall(r"(?:^|[,|]) *([\w.+-]+)", depends.stdout))
    needed = set()
    for program in (BRAIDD, BRAIDCTL, BENCH, LIBRARY):
        listed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
        needed |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", listed))
    needed = {library for library in needed if not library.startswith("libbraid") and "san.so" not in library}
    assert any(library.startswith("libucp") for library in needed)
    patterns = [f"*/{library}" for library in needed]
    found = subprocess.run(["dpkg-query", "-S", *patterns], capture_output=True, text=True, check=True).stdout
    for library in sorted(needed):
        owners = {line.partition(":")[0] for line in found.splitlines() if line.endswith(f"/{library}")}
        assert owners & present, f"the programs need {library} of {owners}, which the image lacks"


@pytest.mark.skipif(
    os.environ.get("BRAID_TEST_IMAGE") != "1", reason="downloads a Debian: BRAID_TEST_IMAGE=1 runs it"
)
@pytest.mark.skipif(not IS_BUILT or os.geteuid() != 0, reason="root, and a build (BRAID_BUILD), are needed")
def test_the_last_stage_holds_a_braidd_that_starts(tmp_path):
    """With the build at hand in place of the stage that compiles."""
    built, tree = tmp_path / "built", tmp_path / "tree"
    subprocess.run(
        ["cmake", "--install", BUILD, "--prefix", "/usr"], check=True, capture_output=True,
        env={**os.environ, "DESTDIR": str(built / "out")},
    )  # fmt: skip
    done = ran([RUN_STEPS, "--tree", tree, "--stand-in", f"build={built}"])
    assert done.returncode == 0, done.stderr
    start = json.loads(done.stdout)
    inside = ["chroot", f"--userspec={start['user']}", tree]
    for argument in ("--version", "--print-config"):
        subprocess.run([*inside, *start["entrypoint"], argument], check=True, timeout=PATIENCE_S)
    for folder in ("run/braid", "var/lib/braid"):
        made = (tree / folder).stat()
        assert (made.st_uid, made.st_gid) == user_of_the_image()
