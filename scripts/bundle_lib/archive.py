# SPDX-License-Identifier: Apache-2.0
"""A wheel of Python alone becomes one of a platform: with more files, commands and licences."""

import base64
import hashlib
import os
import re
import zipfile
from collections.abc import Mapping

from .libraries import CannotBundle

_EXECUTABLE, _PLAIN = 0o100755 << 16, 0o100644 << 16


def repack(pure: str, into: str, platform: str, files: Mapping[str, str], commands: Mapping[str, str]) -> str:
    """The path of the wheel. `files`: where each new one lies, by its name in the wheel, in which INFO stands for the
    folder of the metadata; `commands`: what each calls."""
    name, version, *tag = os.path.basename(pure).removesuffix(".whl").split("-")
    if tag != ["py3", "none", "any"]:
        raise CannotBundle(f"{pure} is no wheel of Python alone")
    info = f"{name}-{version}.dist-info"
    made = os.path.join(into, f"{name}-{version}-py3-none-{platform}.whl")
    unfinished = f"{made}.unfinished"
    with zipfile.ZipFile(pure) as old, zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as new:
        content = {one: (old.read(one), _PLAIN) for one in old.namelist() if one != f"{info}/RECORD"}
        for one, path in files.items():
            mode = _EXECUTABLE if os.access(path, os.X_OK) else _PLAIN
            with open(path, "rb") as file:
                content[one.replace("INFO", info)] = (file.read(), mode)
        _change(content, f"{info}/WHEEL", r"(?m)^Tag: .*$", f"Tag: py3-none-{platform}")
        _change(content, f"{info}/WHEEL", r"(?m)^Root-Is-Purelib: .*$", "Root-Is-Purelib: false")
        lines = "".join(f"{command} = {function}\n" for command, function in commands.items())
        _change(content, f"{info}/entry_points.txt", r"(?m)^\[console_scripts\]\n", rf"\g<0>{lines}")
        record = []
        for one, (data, mode) in sorted(content.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{one},sha256={digest},{len(data)}\n")
            _write(new, one, data, mode)
        _write(new, f"{info}/RECORD", "".join([*record, f"{info}/RECORD,,\n"]).encode(), _PLAIN)
    os.replace(unfinished, made)
    return made


def _change(content: dict[str, tuple[bytes, int]], name: str, what: str, into: str) -> None:
    changed, places = re.subn(what, into, content[name][0].decode())
    if places != 1:
        raise CannotBundle(f"{name} of the wheel has not one line as {what}")
    content[name] = (changed.encode(), _PLAIN)


def _write(archive: zipfile.ZipFile, name: str, data: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name)  # with one date for all: the same files make the same wheel
    entry.external_attr = mode
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)
