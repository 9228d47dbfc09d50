# SPDX-License-Identifier: Apache-2.0
"""scripts/tidy: what one checkout found clean is not looked at again in the next one; what has changed is."""

import os
import pathlib
import shutil
import subprocess

import pytest
from braid_build import REPOSITORY

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("cmake", "ninja", "clang-tidy"))), reason="needs cmake, ninja and clang-tidy"
)

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(toy LANGUAGES CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_subdirectory(src)
"""
CLEAN = '#include "toy.h"\nint toy(int count) { return count + kOne; }\n'
FAULTY = '#include "toy.h"\nint toy(int /*unused*/) { const char* none = 0; return none == 0 ? kOne : 0; }\n'


def checkout(folder: pathlib.Path) -> pathlib.Path:
    (folder / "scripts").mkdir(parents=True)
    (folder / "src").mkdir()
    shutil.copy(REPOSITORY / "scripts" / "tidy", folder / "scripts")
    shutil.copy(REPOSITORY / ".clang-tidy", folder)
    (folder / "CMakeLists.txt").write_text(PROJECT)
    (folder / "src" / "CMakeLists.txt").write_text("add_library(toy STATIC toy.cpp)\n")
    (folder / "src" / "toy.h").write_text("constexpr int kOne = 1;\nint toy(int count);\n")
    (folder / "src" / "toy.cpp").write_text(CLEAN)
    return folder


def tidy(folder: pathlib.Path, cache: pathlib.Path) -> subprocess.CompletedProcess:
    build = folder / "build"
    for command in (["cmake", "-G", "Ninja", "-S", folder, "-B", build], ["ninja", "-C", build]):
        subprocess.run(command, check=True, capture_output=True)
    return subprocess.run(
        [folder / "scripts" / "tidy", build],
        env=os.environ | {"BRAID_CACHE": str(cache)}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_next_checkout_looks_only_at_what_has_changed(tmp_path):
    cache = tmp_path / "cache"
    first = tidy(checkout(tmp_path / "first"), cache)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "0 of 1 batches unchanged" in first.stdout

    second = checkout(tmp_path / "second")
    assert "1 of 1 batches unchanged" in tidy(second, cache).stdout

    (second / "src" / "toy.h").write_text("constexpr int kOne = 2;\nint toy(int count);\n")
    assert "0 of 1 batches unchanged" in tidy(second, cache).stdout


def test_what_was_not_clean_is_looked_at_again(tmp_path):
    folder = checkout(tmp_path / "only")
    (folder / "src" / "toy.cpp").write_text(FAULTY)
    for _ in range(2):
        done = tidy(folder, tmp_path / "cache")
        assert done.returncode == 1, done.stdout + done.stderr
        assert "0 of 1 batches unchanged" in done.stdout
        assert "toy.cpp" in done.stdout
