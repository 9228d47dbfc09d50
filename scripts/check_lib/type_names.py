# SPDX-License-Identifier: Apache-2.0
"""Finds two C++ types of one name.

A type counts when it is defined in a namespace and not in a struct or function. Two definitions of one name in one
namespace are a breach wherever they are: both may be linked into one program, which then takes one for the other. So is
a definition in an anonymous namespace of a name that a header gives to a type of the namespace around it: there the
name means two things to a reader. A namespace within another one is not that one: braid::client::Job is not
braid::Job.

A type within a class of a room of src/ hides the type of that name of the namespace: there must be none in a header of
its room, or of a room that its room depends on. Structs are records, whose parts are called by the record's name, too:
DaemonStatus::Flow."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import cpp_scopes
from cpp_scopes import ANONYMOUS


class Definition(NamedTuple):
    path: str
    line: int
    namespace: str
    name: str
    inside: str = ""  # the classes around it

    @property
    def is_public(self) -> bool:
        return ANONYMOUS not in self.namespace and self.path.endswith(".h")

    @property
    def room(self) -> str | None:
        return self.path.split("/")[1] if self.path.startswith("src/") else None


def definitions(path: str, text: str) -> Iterator[Definition]:
    for scope in cpp_scopes.scopes(text):
        if scope.kind not in ("class", "struct", "enum"):
            continue
        around = {kind: [one.name for one in scope.around if one.kind == kind] for kind in ("namespace", "class")}
        if len(around["namespace"]) + len(around["class"]) == len(scope.around):
            namespace, inside = ("::".join(filter(None, names)) for names in around.values())
            yield Definition(path, scope.line, namespace, scope.name, inside)


def breaches(
    found: Iterable[Definition], rooms: Mapping[str, set[str]],
) -> Iterator[tuple[Definition, str]]:
    """(the later one, what is wrong). `rooms`: of each room those that it depends on."""
    first: dict[tuple[str, str], Definition] = {}
    hidden, nested = [], []
    for one in sorted(found):
        if one.inside:
            nested.append(one)
            continue
        if ANONYMOUS in one.namespace:
            hidden.append(one)
            continue
        other = first.setdefault((one.namespace, one.name), one)
        if other.path != one.path:
            yield one, f"type {one.namespace}::{one.name} is also defined in {other.path}:{other.line}"
    for one in hidden:
        around = one.namespace.split("::" + ANONYMOUS)[0]
        other = first.get((around, one.name))
        if other is not None and other.is_public:
            yield one, f"type {one.name} has the name of {around}::{one.name} in {other.path}:{other.line}"
    for one in nested:
        around = one.namespace.split("::" + ANONYMOUS)[0]
        other = first.get((around, one.name))
        if one.room in rooms and other is not None and other.is_public and other.room in {one.room} | rooms[one.room]:
            yield one, (f"type {one.inside}::{one.name} hides {around}::{one.name}, which is defined in "
                        f"{other.path}:{other.line}")
