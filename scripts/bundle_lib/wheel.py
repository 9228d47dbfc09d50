# SPDX-License-Identifier: Apache-2.0
"""The wheel with everything that a node needs: packaging/wheel/build."""

import glob
import os
import re
import shutil
import struct
from collections.abc import Iterable

from . import libstdcxx
from .archive import repack
from .libraries import BASELINE, Bundle, CannotBundle, expect_symbols, glibc_of, run, set_run_path

PROGRAMS = ("braidd", "braidctl", "braid-bench")
_COMMANDS = {name: f"braid._programs:{name.replace('-', '_')}" for name in PROGRAMS}
_LIBRARY = "libbraid.so.0"
_TARGET = "braid-standalone"
# RDMA's libraries, and theirs, belong to the driver: UCX takes the machine's, or goes without.
_OF_THE_MACHINE = rf"{BASELINE}|libibverbs|librdmacm|libmlx5|libnl-3|libnl-route-3"
# Libraries that are headers alone: their code is in the programs.
_WITHIN = ("libcli11-dev", "libflatbuffers-dev", "nlohmann-json3-dev")
_MACHINES = {62: "x86_64", 183: "aarch64"}  # by the number in an ELF header
_LINK_S = 1200


class Wheel:
    """`build` is the folder of a build, `root` that of the checkout, `scratch` one for this alone."""

    def __init__(self, root: str, build: str, scratch: str, glibc: tuple[int, int]):
        self._root, self._build, self._scratch, self._glibc = root, build, scratch, glibc
        self._bundle = Bundle(_OF_THE_MACHINE)
        self._package = os.path.join(scratch, "braid")
        self._libraries = os.path.join(self._package, "lib")

    def make(self, python: str, output: str) -> str:
        """The path of what was made."""
        run("cmake", "--build", self._build, "--target", _TARGET, limit_s=_LINK_S)
        pure = self._pure(python)
        programs = self._copy_programs()
        origins = self._copy_libraries(programs)
        files = [os.path.join(at, name) for at, _, names in os.walk(self._package) for name in names]
        self._check(files)
        for path in (*programs, os.path.join(self._libraries, _LIBRARY)):
            expect_symbols(path)
        content = {os.path.relpath(path, self._scratch): path for path in files}
        content |= {f"INFO/licenses/{name}": path for name, path in self._licences(origins).items()}
        major, minor = self._glibc
        platform = f"manylinux_{major}_{minor}_{_machine(programs[0])}"
        return repack(pure, output, platform, content, _COMMANDS)

    def _pure(self, python: str) -> str:
        # setuptools leaves files beside what it builds.
        source = os.path.join(self._scratch, "python")
        without = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "bin", "lib")
        shutil.copytree(os.path.join(self._root, "python"), source, ignore=without)
        folder = os.path.join(self._scratch, "pure")
        run(python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
            "--no-build-isolation", "--wheel-dir", folder, source, limit_s=_LINK_S)  # fmt: skip
        (name,) = os.listdir(folder)
        return os.path.join(folder, name)

    def _copy_programs(self) -> list[str]:
        made = [os.path.join(self._package, "bin", name) for name in PROGRAMS]
        os.makedirs(os.path.dirname(made[0]))
        for path in made:
            run("strip", "--strip-unneeded", "-o", path, os.path.join(self._build, "bin", os.path.basename(path)))
        return made

    def _copy_libraries(self, programs: list[str]) -> dict[str, str]:
        """Where the foreign ones come from, by their names."""
        os.makedirs(os.path.join(self._libraries, "ucx"))
        origins = self._bundle.copy_libraries(self._libraries, programs)
        own = os.path.join(self._libraries, _LIBRARY)
        run("strip", "--strip-unneeded", "-o", own, os.path.join(self._build, "lib", "standalone", _LIBRARY))
        del origins[_LIBRARY]
        libstdcxx.link(self._libraries, origins[libstdcxx.NAME], self._compiler(), self._scratch)
        modules = self._copy_ucx_modules(origins)
        for path in programs:
            set_run_path(path, "$ORIGIN/../lib")
        for name in (*origins, _LIBRARY):
            set_run_path(os.path.join(self._libraries, name), "$ORIGIN")
        for name in modules:
            set_run_path(os.path.join(self._libraries, "ucx", name), "$ORIGIN:$ORIGIN/..")
        return origins | modules

    def _copy_ucx_modules(self, origins: dict[str, str]) -> dict[str, str]:
        """Transports that UCX looks for in a folder beside itself, before it looks where the system's UCX has them."""
        found = {}
        for path in glob.glob(os.path.join(os.path.dirname(origins["libuct.so.0"]), "ucx", "libuct_*.so.0")):
            name = os.path.basename(path)
            found[name] = os.path.realpath(path)
            shutil.copy(path, os.path.join(self._libraries, "ucx", name))
        return found

    def _compiler(self) -> str:
        with open(os.path.join(self._build, "CMakeCache.txt"), encoding="utf-8") as file:
            (compiler,) = re.findall(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", file.read(), re.M)
        return compiler

    def _check(self, files: Iterable[str]) -> None:
        for path in files:
            self._bundle.expect_whole(path, self._libraries)
            needed = glibc_of([path])
            if needed > self._glibc:
                says = ".".join(map(str, self._glibc))
                raise CannotBundle(
                    f"{os.path.relpath(path, self._scratch)} needs glibc {'.'.join(map(str, needed))}, and the wheel's"
                    f" name would say {says}: build on an older system, or give --glibc"
                )

    def _licences(self, origins: dict[str, str]) -> dict[str, str]:
        """By its name in the wheel the file, for braid and for each package of the distribution that is inside."""
        found = {"LICENSE": os.path.join(self._root, "LICENSE")}
        for package in {*map(_package_of, origins.values()), *_WITHIN}:
            found[f"{package}/copyright"] = f"/usr/share/doc/{package}/copyright"
            if not os.path.exists(found[f"{package}/copyright"]):
                raise CannotBundle(f"the licence of {package} is not in {found[f'{package}/copyright']}")
        return found


def _package_of(path: str) -> str:
    for known in (path, path.removeprefix("/usr")):  # dpkg knows a file by one name alone
        try:
            return run("dpkg-query", "--search", known).partition(":")[0]
        except CannotBundle:
            continue
    raise CannotBundle(f"{path} is of no package of this system, which would have its licence")


def _machine(program: str) -> str:
    with open(program, "rb") as file:
        (number,) = struct.unpack("<18xH", file.read(20))
    if number not in _MACHINES:
        raise CannotBundle(f"{program} is for a machine that wheels have no name for (ELF machine {number})")
    return _MACHINES[number]
