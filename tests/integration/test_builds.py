# SPDX-License-Identifier: Apache-2.0
"""Everything builds on the next Debian and on Ubuntu, and with clang: what a stranger would try first."""

import os
import pathlib
import subprocess

import pytest
from bare_tree import BareTree, needs_bare_tree
from braid_build import REPOSITORY

pytestmark = [
    needs_bare_tree,
    pytest.mark.skipif(
        os.environ.get("BRAID_TEST_BUILDS") != "1", reason="half an hour for each: scripts/check.sh --all runs them"
    ),
]

# For two cores.
BUILD_S = 5400
SECTIONS = ("Building", "Libraries", "Checking")
COMPILERS = {"g++": ["gcc", "g++"], "clang++": ["clang", "clang++"]}


def packages_to_build_with() -> list[str]:
    """Those of scripts/packages.txt in SECTIONS, less the tools that only look at the sources."""
    named, section = [], ""
    for line in (REPOSITORY / "scripts" / "packages.txt").read_text().splitlines():
        if line.startswith("#"):
            section = line.removeprefix("# ").split(":")[0]
        elif line and section in SECTIONS:
            named.append(line.split()[0])
    return sorted(set(named) - {"clang-format", "clang-tidy", "ccache"})


@pytest.mark.timeout(2 * BUILD_S)
@pytest.mark.parametrize("release, compiler", [("trixie", "g++"), ("trixie", "clang++"), ("noble", "g++")])
def test_all_of_it_builds_and_its_unit_tests_pass(tmp_path, release, compiler):
    sources = tmp_path / "sources"
    sources.mkdir()
    archive = subprocess.Popen(["git", "-C", REPOSITORY, "archive", "HEAD"], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", sources], stdin=archive.stdout, check=True)
    assert archive.wait() == 0
    headers = cuda_headers()
    include = [*packages_to_build_with(), *(["clang"] if compiler == "clang++" else [])]
    with BareTree(tmp_path, sources, release, include, mounts={"/cuda": headers}) as tree:
        c, cpp = COMPILERS[compiler]
        configure = ["cmake", "-S", "/packages", "--preset", "release", "-B", "/srv/build"]
        configure += [f"-DCMAKE_C_COMPILER={c}", f"-DCMAKE_CXX_COMPILER={cpp}", "-DBRAID_CUDA_HEADERS=/cuda"]
        tree.run(*configure, "-DBRAID_WERROR=ON")
        tree.run("cmake", "--build", "/srv/build", "--", "-k", "0", timeout=BUILD_S)  # all errors
        tree.run("ctest", "--test-dir", "/srv/build", "--output-on-failure", "--timeout", "120", timeout=BUILD_S)


def cuda_headers() -> pathlib.Path:
    """Those that this machine builds with."""
    cache = (REPOSITORY / "build" / "release" / "CMakeCache.txt").read_text()
    (own,) = [line.split("=", 1)[1] for line in cache.splitlines() if line.startswith("BRAID_CUDA_HEADERS:")]
    places = (own or "/nowhere", REPOSITORY / "build" / "cuda-headers", "/usr/local/cuda/include")
    return next(path for path in map(pathlib.Path, places) if (path / "cudaTypedefs.h").exists())
