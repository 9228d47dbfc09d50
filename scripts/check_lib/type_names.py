# SPDX-License-Identifier: Apache-2.0
"""Finds two C++ types of one name.

A type counts when it is defined in a namespace and not in a class or function. Two definitions of one name in one
namespace are a breach wherever they are: both may be linked into one program, which then takes one for the other. So is
a definition in an anonymous namespace of a name that a header gives to a type of the namespace around it: there the
name means two things to a reader. A namespace within another one is not that one: braid::client::Job is not
braid::Job."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

ANONYMOUS = "(anonymous)"
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'', re.DOTALL)
NAMESPACE = re.compile(r"(?:inline\s+)?namespace(?:\s+([\w:]+))?\s*\{")
TYPE = re.compile(
    r"(?:enum\s+class|enum\s+struct|enum|class|struct|union)\s+"
    r"(?:\[\[\w+\]\]\s*|alignas\s*\([^()]*\)\s*|[A-Z]\w*_[A-Z_]+(?:\([^()]*\))?\s+)*"
    r"(\w+)\s*(?:final\s*)?(?::(?!:)[^;{}()]*)?\{")
EXTERN = re.compile(r"extern\s+\{")  # its "C" is no code any more
TOKEN = re.compile(rf"\b{NAMESPACE.pattern}|\b{TYPE.pattern}|\b{EXTERN.pattern}|[{{}}]")


class Definition(NamedTuple):
    path: str
    line: int
    namespace: str
    name: str

    @property
    def is_public(self) -> bool:
        return ANONYMOUS not in self.namespace and self.path.endswith(".h")


def blank(match: re.Match) -> str:
    """As many lines, and no braces."""
    return "\n" * match[0].count("\n")


def definitions(path: str, text: str) -> Iterator[Definition]:
    code = NOT_CODE.sub(blank, text)
    scopes: list[str | None] = []  # of each open brace the namespace; None: no namespace
    for match in TOKEN.finditer(code):
        token = match[0]
        if token == "}":
            if scopes:
                scopes.pop()
            continue
        inside = [scope for scope in scopes if scope]
        if token == "{":
            scopes.append(None)
        elif EXTERN.fullmatch(token):
            scopes.append("")
        elif "namespace" in token.split("{")[0].split():
            scopes.append(match[1] or ANONYMOUS)
        else:
            if None not in scopes:
                line = code.count("\n", 0, match.start()) + 1
                yield Definition(path, line, "::".join(inside), match[2])
            scopes.append(None)


def breaches(found: Iterable[Definition]) -> Iterator[tuple[Definition, str]]:
    """(the later one, what is wrong)."""
    first: dict[tuple[str, str], Definition] = {}
    hidden = []
    for one in sorted(found):
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
