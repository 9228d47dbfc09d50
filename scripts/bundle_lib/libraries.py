# SPDX-License-Identifier: Apache-2.0
"""Programs that take their shared libraries along, in a folder beside them, and find them there."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable

# What is the other machine's in any case: the C library's, and the compiler's for C.
BASELINE = r"ld-linux.*|libc|libm|libpthread|libdl|librt|libresolv|libgcc_s"
_RUN_S = 60


class CannotBundle(Exception):
    """The text names the file or the tool, and what is wrong with it."""


class Bundle:
    """What lies below one folder; `of_the_machine` is a pattern of the libraries, without ".so", that stay outside."""

    def __init__(self, of_the_machine: str):
        self._outside = re.compile(rf"({of_the_machine})\.so\b.*|linux-vdso.*")

    def copy_libraries(self, into: str, programs: Iterable[str]) -> dict[str, str]:
        """Those that the programs need, directly or through others: where each was, by its name."""
        needed = {one for program in programs for one in _libraries_of(program)}
        copied = {name: os.path.realpath(path) for name, path in needed if not self._outside.fullmatch(name)}
        for name, path in copied.items():
            shutil.copy(path, os.path.join(into, name))
            os.chmod(os.path.join(into, name), 0o755)
        return copied

    def expect_whole(self, path: str, libraries: str) -> None:
        """With an empty environment it takes from outside only what is the machine's."""
        for name, found in re.findall(r"^\s*(\S+) => (.+?)(?: \(0x\w+\))?$", run("ldd", path, env={}), re.M):
            inside = os.path.realpath(found).startswith(os.path.realpath(libraries) + os.sep)
            if not inside and not self._outside.fullmatch(name):
                raise CannotBundle(f"{path} would take {name} from {found}")


def expect_symbols(program: str) -> None:
    """The libraries that it finds have all symbols, in their versions."""
    said = run("ldd", "-r", program, env={}, errors=True)
    lacks = r"^(undefined symbol: .*|symbol .* not defined in file .*|.*: version .* not found.*)$"
    if found := re.search(lacks, said, re.M):
        raise CannotBundle(f"{program}: {found[1]}")


def set_run_path(path: str, run_path: str) -> None:
    """It goes before LD_LIBRARY_PATH, which is meant for other programs' libraries."""
    run("patchelf", "--force-rpath", "--set-rpath", run_path, path)


def glibc_of(paths: Iterable[str]) -> tuple[int, int]:
    """The oldest C library with which they all run."""
    return max(map(_glibc, paths))


def _glibc(path: str) -> tuple[int, int]:
    versions = re.findall(r"\bGLIBC_(\d+)\.(\d+)", run("readelf", "-V", path))
    return max(((int(major), int(minor)) for major, minor in versions), default=(2, 0))


def _libraries_of(program: str) -> list[tuple[str, str]]:
    """Names and paths, without those that are not found."""
    return re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", program), re.M)


def run(*argv: str, env: dict[str, str] | None = None, errors: bool = False, limit_s: float = _RUN_S) -> str:
    """What it prints; `errors`: also what it says about errors, though it succeeds."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=limit_s, check=True, env=env)
    except subprocess.CalledProcessError as error:
        raise CannotBundle(f"{argv[0]}: {error.stderr.strip()}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBundle(f"{argv[0]}: {error}") from None
    return done.stdout + done.stderr if errors else done.stdout
