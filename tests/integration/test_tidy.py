# SPDX-License-Identifier: Apache-2.0
"""scripts/tidy: what one checkout found clean is not looked at again in the next one; what has changed is."""

import os
import pathlib
import shutil
import subprocess

import pytest
from braid_build import REPOSITORY, ran

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("cmake", "ninja", "clang-tidy"))), reason="needs cmake, ninja and clang-tidy"
)

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(toy LANGUAGES CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_UNITY_BUILD {joined})
add_subdirectory(src)
"""
CLEAN = '#include "toy.h"\nint toy(int count) { return count + kOne; }\n'
FAULTY = '#include "toy.h"\nint toy(int /*unused*/) { const char* none = 0; return none == 0 ? kOne : 0; }\n'


def checkout(folder: pathlib.Path, joined: str) -> pathlib.Path:
    (folder / "scripts").mkdir(parents=True)
    (folder / "src").mkdir()
    shutil.copy(REPOSITORY / "scripts" / "tidy", folder / "scripts")
    shutil.copy(REPOSITORY / ".clang-tidy", folder)
    (folder / "CMakeLists.txt").write_text(PROJECT.format(joined=joined))
    (folder / "src" / "CMakeLists.txt").write_text("add_library(toy STATIC toy.cpp other.cpp)\n")
    (folder / "src" / "toy.h").write_text("#pragma once\nconstexpr int kOne = 1;\nint toy(int count);\n")
    (folder / "src" / "toy.cpp").write_text(CLEAN)
    (folder / "src" / "other.cpp").write_text('#include "toy.h"\nint other() { return kOne; }\n')
    return folder


def tidy(folder: pathlib.Path, cache: pathlib.Path) -> subprocess.CompletedProcess:
    build = folder / "build"
    for command in (["cmake", "-G", "Ninja", "-S", folder, "-B", build], ["ninja", "-C", build]):
        subprocess.run(command, check=True, capture_output=True)
    return ran([folder / "scripts" / "tidy", build], env=os.environ | {"BRAID_CACHE": str(cache)})


# Whether the build joins sources, and what there is to look at then.
JOINED = pytest.mark.parametrize("joined, objects", [("OFF", 2), ("ON", 1)])


@JOINED
def test_the_next_checkout_looks_only_at_what_has_changed(tmp_path, joined, objects):
    cache = tmp_path / "cache"
    first = tidy(checkout(tmp_path / "first", joined), cache)
    assert first.returncode == 0, first.stdout + first.stderr
    assert f"2 files, 0 of {objects} objects unchanged" in first.stdout

    second = checkout(tmp_path / "second", joined)
    assert f"{objects} of {objects} objects unchanged" in tidy(second, cache).stdout

    (second / "src" / "other.cpp").write_text("int other() { return 2; }\n")
    assert f"{objects - 1} of {objects} objects unchanged" in tidy(second, cache).stdout

    (second / "src" / "toy.h").write_text("#pragma once\nconstexpr int kOne = 2;\nint toy(int count);\n")
    assert f"{objects - 1} of {objects} objects unchanged" in tidy(second, cache).stdout


@JOINED
def test_what_was_not_clean_is_looked_at_again(tmp_path, joined, objects):
    folder = checkout(tmp_path / "only", joined)
    (folder / "src" / "toy.cpp").write_text(FAULTY)
    for unchanged in (0, objects - 1):
        done = tidy(folder, tmp_path / "cache")
        assert done.returncode == 1, done.stdout + done.stderr
        assert f"{unchanged} of {objects} objects unchanged" in done.stdout
        assert "toy.cpp" in done.stdout
