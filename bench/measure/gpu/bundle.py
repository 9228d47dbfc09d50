# SPDX-License-Identifier: Apache-2.0
"""A folder that measures on a machine with neither this checkout, nor these packages, nor a network.

It is a small checkout: the scripts, and a release build whose programs find their libraries beside them. The C and C++
libraries, the driver, Python and torch are the other machine's.
"""

import json
import os
import re
import shutil
import subprocess

from .. import needs
from ..errors import RunFailed
from ..paths import ROOT, Installation
from . import probe

_PROGRAMS = ("braidd", "braidctl", "braid-bench", probe.NAME)
_TOOLS = ("ip", "tc")  # the machine that measures may have none
_OPTIONAL_TOOLS = ("iperf3",)
_FOLDERS = ("bench/measure", "scripts/cluster_lib", "python/braid")
_SCRIPTS = ("bench/gpu/measure", "scripts/cluster")
# They belong to the C library, to the compiler or to the driver: a program must take the machine's own.
_OF_THE_MACHINE = re.compile(
    r"(ld-linux.*|libc|libm|libpthread|libdl|librt|libresolv|libgcc_s|libstdc\+\+|libcuda)\.so\b.*|linux-vdso.*"
)
_MARK = "bundle.json"  # a folder with it may be made anew
_LAUNCHER = """\
#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
exec python3 "$(dirname "$(readlink -f "$0")")/bench/gpu/measure" run "$@"
"""
_RUN_S = 60


def missing(braid: Installation) -> list[str]:
    found = needs.programs(patchelf="patchelf", strip="binutils", readelf="binutils", ip="iproute2", tc="iproute2")
    return found + needs.files([*(braid.program(name) for name in _PROGRAMS), braid.library])


def make(folder: str, braid: Installation) -> str:
    """What was made, in one sentence."""
    if os.path.exists(folder):
        if not os.path.exists(os.path.join(folder, _MARK)):
            raise RunFailed(f"{folder} is there, and no bundle: remove it, or name another folder")
        shutil.rmtree(folder)
    _copy_scripts(folder)
    build = os.path.join(folder, "build", "release")
    programs = _copy_programs(os.path.join(build, "bin"), braid)
    libraries = os.path.join(build, "lib")
    os.mkdir(libraries)
    _copy_libraries(libraries, [*programs, braid.library])
    shutil.copy(braid.library, os.path.join(libraries, os.path.basename(braid.library)))
    for path in programs:
        _run("patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/../lib", path)
    libraries_made = [os.path.join(libraries, name) for name in os.listdir(libraries)]
    for path in libraries_made:
        _run("patchelf", "--force-rpath", "--set-rpath", "$ORIGIN", path)
    for path in (*programs, *libraries_made):
        _expect_whole(path, libraries)
    return f"{folder}: {_mebibytes(folder)} MiB, needs {_glibc([*programs, *libraries_made])} or later"


def _copy_scripts(folder: str) -> None:
    for name in _FOLDERS:
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(os.path.join(ROOT, name), os.path.join(folder, name), ignore=without)
    for name in _SCRIPTS:
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        shutil.copy(os.path.join(ROOT, name), os.path.join(folder, name))
    launcher = os.path.join(folder, "measure")
    with open(launcher, "w", encoding="utf-8") as file:
        file.write(_LAUNCHER)
    os.chmod(launcher, 0o755)
    commit = _run("git", "-C", ROOT, "describe", "--always", "--dirty").strip()
    with open(os.path.join(folder, _MARK), "w", encoding="utf-8") as file:
        json.dump({"braid": commit}, file)
        file.write("\n")


def _copy_programs(into: str, braid: Installation) -> list[str]:
    os.makedirs(into)
    made = []
    for name in _PROGRAMS:
        made.append(os.path.join(into, name))
        _run("strip", "--strip-unneeded", "-o", made[-1], braid.program(name))
    for name in (*_TOOLS, *_OPTIONAL_TOOLS):
        if (found := shutil.which(name)) is not None:
            made.append(os.path.join(into, name))
            shutil.copy(os.path.realpath(found), made[-1])
    return made


def _copy_libraries(into: str, programs: list[str]) -> None:
    for name, path in {one for program in programs for one in _libraries_of(program)}:
        if not _OF_THE_MACHINE.fullmatch(name):
            shutil.copy(os.path.realpath(path), os.path.join(into, name))
            os.chmod(os.path.join(into, name), 0o755)


def _libraries_of(program: str) -> list[tuple[str, str]]:
    """Names and paths, without those that are not found."""
    return re.findall(r"^\s*(\S+) => (/\S+)", _run("ldd", program), re.M)


def _expect_whole(path: str, libraries: str) -> None:
    """With an empty environment it takes from outside only what is the machine's."""
    said = subprocess.run(["ldd", path], capture_output=True, text=True, timeout=_RUN_S, check=True, env={}).stdout
    for name, found in re.findall(r"^\s*(\S+) => (.+?)(?: \(0x\w+\))?$", said, re.M):
        inside = os.path.realpath(found).startswith(os.path.realpath(libraries) + os.sep)
        if not inside and not _OF_THE_MACHINE.fullmatch(name):
            raise RunFailed(f"{path} would take {name} from {found}")


def _glibc(paths: list[str]) -> str:
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", "".join(_run("readelf", "-V", path) for path in paths))
    return "glibc " + ".".join(map(str, max((int(major), int(minor)) for major, minor in versions)))


def _mebibytes(folder: str) -> int:
    sizes = (os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)
    return -(-sum(sizes) >> 20)


def _run(*argv: str) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=_RUN_S, check=True).stdout
    except subprocess.CalledProcessError as error:
        raise RunFailed(f"{argv[0]}: {error.stderr.strip()}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunFailed(f"{argv[0]}: {error}") from None
