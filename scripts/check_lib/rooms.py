# SPDX-License-Identifier: Apache-2.0
"""Finds includes that go another way than the dependencies between the rooms of src/.

A room depends on what its CMakeLists.txt links it with, near or far. A linker does not notice when a header of another
room is included: then the room depends on it without saying so, and two rooms may come to depend on each other."""

import re
from collections.abc import Iterator, Mapping

ROOM = re.compile(r"src/(\w+)/CMakeLists\.txt")
LIBRARY = re.compile(r"add_library\((\w+)")
LINK = re.compile(r"target_link_libraries\(([^)]*)\)")
INCLUDE = re.compile(r'#include "(\w+)/')


def dependencies(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """All rooms that each room depends on; `texts`: by path."""
    files = {match[1]: text for path, text in texts.items() if (match := ROOM.fullmatch(path))}
    room_of = {library: room for room, text in files.items() for library in LIBRARY.findall(text)}
    near = {
        room: {room_of[word] for word in " ".join(LINK.findall(text)).split() if word in room_of} - {room}
        for room, text in files.items()
    }
    far = {}
    for room in near:
        far[room], new = set(), near[room]
        while new:
            far[room] |= new
            new = set().union(*(near[one] for one in new)) - far[room]
    return far


def breaches(texts: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """(path, line, what is wrong)."""
    far = dependencies(texts)
    for room in sorted(far):
        if room in far[room]:
            yield f"src/{room}/CMakeLists.txt", 1, f"room '{room}' depends on itself, through others"
    for path, text in texts.items():
        room = path.split("/")[1] if path.startswith("src/") else None
        if room not in far or not path.endswith((".h", ".cpp")):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            match = INCLUDE.match(line)
            if match and match[1] in far and match[1] != room and match[1] not in far[room]:
                yield path, number, f"room '{room}' does not depend on '{match[1]}'"
