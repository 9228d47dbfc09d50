# SPDX-License-Identifier: Apache-2.0
"""What stands between the braces of C++ text: namespaces, types, functions, data. By tokens alone, so that it takes
no compiler and no time."""

import re
from collections.abc import Iterator
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
# What is in front of braces around values; the second: in a constructor's initializers.
DATA = re.compile(r"[=,(]\s*$|(?<!:)[:,]\s*\w+\s*$")
# In front of a function's body, of one that is declared in a class and defined outside.
OWNER = re.compile(r"((?:\w+(?:<[^<>]*>)?::)+)(?:~?\w+|operator\s*(?:\(\)|[^\s\w(]+|\w+))\s*\(")
HOLDS_FUNCTIONS = ("namespace", "class", "struct")


class Scope(NamedTuple):
    kind: str  # namespace, class, struct (a union, too), enum, function, or other: what is within functions, and data
    name: str  # of a namespace or type
    line: int  # of its keyword, or of its {
    first_line: int  # of its {
    last_line: int  # of its }
    around: tuple["Scope", ...]  # from the outermost on; their ends are not known yet
    owner: str = ""  # the class of a function that is defined outside of it


def blank(match: re.Match) -> str:
    """As many lines, and no braces."""
    return "\n" * match[0].count("\n")


def _opened(match: re.Match, before: str, around: list[Scope]) -> tuple[str, str]:
    """Kind and name of what begins here."""
    token = match[0]
    if token == "{":
        is_function = all(one.kind in HOLDS_FUNCTIONS for one in around) and not DATA.search(before)
        return ("function" if is_function else "other"), ""
    if EXTERN.fullmatch(token):
        return "namespace", ""
    words = token.split("{")[0].split()
    if "namespace" in words:
        return "namespace", match[1] or ANONYMOUS
    return ("struct" if words[0] == "union" else words[0]), match[2]


def _owner(head: str) -> str:
    match = OWNER.search(head[head.rfind(";") + 1 :])
    return re.sub(r"<[^<>]*>", "", match[1])[: -len("::")] if match else ""


def scopes(text: str) -> Iterator[Scope]:
    """Each one where it ends."""
    code = NOT_CODE.sub(blank, text)
    opened: list[Scope] = []
    line, at = 1, 0
    head = ""  # what is in front of a function's body, initializers with braces included
    for match in TOKEN.finditer(code):
        before = code[at : match.start()]
        line += before.count("\n")
        brace_line = line + match[0].count("\n")
        if match[0] != "}":
            kind, name = _opened(match, before, opened)
            head += before
            owner = _owner(head) if kind == "function" else ""
            opened.append(Scope(kind, name, line, brace_line, 0, tuple(opened), owner))
            if kind != "other":
                head = ""
        elif opened:
            closed = opened.pop()
            yield closed._replace(last_line=line)
            if closed.kind != "other":
                head = ""
        line, at = brace_line, match.end()
