# SPDX-License-Identifier: Apache-2.0
"""A folder that measures on a machine with neither this checkout, nor these packages, nor a network.

It is a small checkout: the scripts, and a release build whose programs find their libraries beside them. The C and C++
libraries, the driver, Python and torch are the other machine's.
"""

import json
import os
import shutil

from bundle_lib.libraries import BASELINE, Bundle, CannotBundle, glibc_of, run, set_run_path

from .. import needs
from ..errors import RunFailed
from ..paths import ROOT, Installation
from . import probe

_PROGRAMS = ("braidd", "braidctl", "braid-bench", probe.NAME)
_TOOLS = ("ip", "tc")  # the machine that measures may have none
_OPTIONAL_TOOLS = ("iperf3",)
_FOLDERS = ("bench/measure", "scripts/bundle_lib", "scripts/cluster_lib", "python/braid")
_SCRIPTS = ("bench/gpu/measure", "scripts/cluster")
# A program must take the compiler's and the driver's libraries of the machine, too.
_OF_THE_MACHINE = rf"{BASELINE}|libstdc\+\+|libcuda"
_MARK = "bundle.json"  # a folder with it may be made anew
_LAUNCHER = """\
#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
exec python3 "$(dirname "$(readlink -f "$0")")/bench/gpu/measure" run "$@"
"""


def missing(braid: Installation) -> list[str]:
    found = needs.programs(patchelf="patchelf", strip="binutils", readelf="binutils", ip="iproute2", tc="iproute2")
    return found + needs.files([*(braid.program(name) for name in _PROGRAMS), braid.library])


def make(folder: str, braid: Installation) -> str:
    """What was made, in one sentence."""
    try:
        return _make(folder, braid)
    except CannotBundle as error:
        raise RunFailed(str(error)) from None


def _make(folder: str, braid: Installation) -> str:
    if os.path.exists(folder):
        if not os.path.exists(os.path.join(folder, _MARK)):
            raise RunFailed(f"{folder} is there, and no bundle: remove it, or name another folder")
        shutil.rmtree(folder)
    _copy_scripts(folder)
    build = os.path.join(folder, "build", "release")
    programs = _copy_programs(os.path.join(build, "bin"), braid)
    libraries = os.path.join(build, "lib")
    os.mkdir(libraries)
    bundle = Bundle(_OF_THE_MACHINE)
    bundle.copy_libraries(libraries, [*programs, braid.library])
    shutil.copy(braid.library, os.path.join(libraries, os.path.basename(braid.library)))
    for path in programs:
        set_run_path(path, "$ORIGIN/../lib")
    libraries_made = [os.path.join(libraries, name) for name in os.listdir(libraries)]
    for path in libraries_made:
        set_run_path(path, "$ORIGIN")
    for path in (*programs, *libraries_made):
        bundle.expect_whole(path, libraries)
    glibc = ".".join(map(str, glibc_of([*programs, *libraries_made])))
    return f"{folder}: {_mebibytes(folder)} MiB, needs glibc {glibc} or later"


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
    commit = run("git", "-C", ROOT, "describe", "--always", "--dirty").strip()
    with open(os.path.join(folder, _MARK), "w", encoding="utf-8") as file:
        json.dump({"braid": commit}, file)
        file.write("\n")


def _copy_programs(into: str, braid: Installation) -> list[str]:
    os.makedirs(into)
    made = []
    for name in _PROGRAMS:
        made.append(os.path.join(into, name))
        run("strip", "--strip-unneeded", "-o", made[-1], braid.program(name))
    for name in (*_TOOLS, *_OPTIONAL_TOOLS):
        if (found := shutil.which(name)) is not None:
            made.append(os.path.join(into, name))
            shutil.copy(os.path.realpath(found), made[-1])
    return made


def _mebibytes(folder: str) -> int:
    sizes = (os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)
    return -(-sum(sizes) >> 20)
