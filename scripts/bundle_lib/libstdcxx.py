# SPDX-License-Identifier: Apache-2.0
"""A libstdc++.so.6 that runs with an older C library than the compiler's own.

The compiler's own is tied to the C library that it was built with: GCC 12's asks Debian 12's for arc4random, which is
of glibc 2.36. So the archive of the same library is linked anew, with the same symbols in the same versions.
"""

import collections
import os
import re

from .libraries import run

NAME = "libstdc++.so.6"
# std::random_device asks this. The kernel's numbers are what arc4random gives, too.
_RANDOM = """\
#include <unistd.h>
__attribute__((visibility("hidden"))) unsigned arc4random(void) {
  unsigned value;
  if (getentropy(&value, sizeof value) != 0) __builtin_trap();
  return value;
}
"""


def link(into: str, own: str, compiler: str, scratch: str) -> None:
    """`into`: the folder for it; `own`: the compiler's libstdc++.so.6."""
    source, map_file = os.path.join(scratch, "random.c"), os.path.join(scratch, "libstdc++.map")
    for path, text in ((source, _RANDOM), (map_file, _version_map(own))):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    archive = run(compiler, "-print-file-name=libstdc++.a").strip()
    linked = os.path.join(scratch, NAME)
    run(compiler, "-shared", "-fPIC", "-O2", "-nodefaultlibs", f"-Wl,-soname,{NAME}",
        f"-Wl,--version-script={map_file}", "-o", linked, "-x", "c", source, "-x", "none", "-Wl,--whole-archive",
        archive, "-Wl,--no-whole-archive", "-lm", "-lgcc_s", "-lgcc", "-lc")  # fmt: skip
    run("strip", "--strip-unneeded", "-o", os.path.join(into, NAME), linked)


def _version_map(own: str) -> str:
    """A linker's version script with the versions of `own`, and the symbols that have each by default."""
    symbols = collections.defaultdict(list)
    for line in run("readelf", "--dyn-syms", "--wide", own).splitlines():
        if (found := re.search(r"\s(\S+)\s(\S+)@@(\S+)$", line)) and found[1] != "UND" and found[2] != found[3]:
            symbols[found[3]].append(found[2])
    hidden = " local: *;"  # one of the versions says that everything else stays inside
    nodes = []
    for version, names in symbols.items():
        nodes.append(f"{version} {{ global: {' '.join(f'{name};' for name in names)}{hidden} }};")
        hidden = ""
    return "\n".join(nodes)
