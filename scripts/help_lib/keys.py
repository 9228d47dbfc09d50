# SPDX-License-Identifier: Apache-2.0
"""The keys of braidd's configuration, from what `braidd --print-config` prints."""

import dataclasses
import re

from .parse import HelpError


_UNDOCUMENTED = "debug"  # for tests of braid itself


@dataclasses.dataclass
class Key:
    name: str  # dotted
    default: str
    help: str  # ends with type and range, in parentheses


@dataclasses.dataclass
class Section:
    name: str
    help: str
    keys: list[Key]


def parse_configuration(text: str) -> list[Section]:
    sections: list[Section] = []
    comment: list[str] = []
    for line in filter(str.strip, text.split("\n")):
        if line.strip().startswith("#"):
            comment.append(line.strip().lstrip("# "))
            continue
        name, colon, value = line.strip().partition(":")
        if not colon or not re.fullmatch(r"[a-z0-9_]+", name):
            raise HelpError(f"braidd --print-config printed a line that is no key: '{line}'")
        if not line.startswith(" "):
            sections.append(Section(name, " ".join(comment), []))
        else:
            key = Key(f"{sections[-1].name}.{name}", value.strip(), " ".join(comment))
            sections[-1].keys.append(key)
        comment = []
    if not sections:
        raise HelpError("braidd --print-config printed no keys")
    return [section for section in sections if section.name != _UNDOCUMENTED]
