# SPDX-License-Identifier: Apache-2.0
"""Finds functions and classes that are so long that there is a second idea in them.

In C++ the lines of a body count, from that of its { to that of its }; in Python all from `def` or `class` on. Blank
lines and comments count, and so does all that stands within: a lambda with its function, the functions of a class with
the class. A C++ table (`= {` outside of functions) is data and may be long. A C++ class has one more limit, for its
declaration and its functions in all files together."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping

import cpp_scopes

FUNCTION_LINES_MAX = 60
CLASS_LINES_MAX = 300
WHOLE_CLASS_LINES_MAX = 400


def cpp_bodies(text: str) -> Iterator[tuple[str, int, int]]:
    """(what it is, its first line, its last one)"""
    for scope in cpp_scopes.scopes(text):
        if scope.kind == "function":
            yield "function", scope.first_line, scope.last_line
        elif scope.kind in ("class", "struct"):
            yield "class", scope.first_line, scope.last_line


def python_bodies(text: str) -> Iterator[tuple[str, int, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield "function", node.lineno, node.end_lineno
        elif isinstance(node, ast.ClassDef):
            yield "class", node.lineno, node.end_lineno


def breaches(bodies: Iterator[tuple[str, int, int]]) -> Iterator[tuple[int, str]]:
    """(line, what is wrong)"""
    for what, first, last in bodies:
        lines, most = last - first + 1, FUNCTION_LINES_MAX if what == "function" else CLASS_LINES_MAX
        if lines > most:
            yield first, f"a {what} of {lines} lines: find the second idea in it, {most} are the most"


def whole_classes(texts: Mapping[str, str]) -> tuple[Counter[str], dict[str, tuple[str, int]]]:
    """The lines of all C++ classes in these files ({path: text}), and where they are declared (path, line)."""
    lines, places = Counter(), {}
    for path, text in texts.items():
        if not path.endswith((".h", ".cpp")):
            continue
        for scope in cpp_scopes.scopes(text):
            names = [one.name for one in scope.around if one.kind in ("namespace", "class", "struct")]
            is_type = scope.kind in ("class", "struct") and all(one.kind != "function" for one in scope.around)
            name = scope.name if is_type else scope.owner
            if name and len(names) == sum(one.kind == "namespace" for one in scope.around):
                full = "::".join([*names, name])
                lines[full] += scope.last_line - scope.first_line + 1
                if is_type:
                    places[full] = path, scope.line
    return lines, places


def whole_breaches(texts: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """(path, line, what is wrong)"""
    lines, places = whole_classes(texts)
    for name, count in lines.items():
        if count > WHOLE_CLASS_LINES_MAX and name in places:
            what = f"{name} has {count} lines with its functions: find the second idea in it"
            yield *places[name], f"{what}, {WHOLE_CLASS_LINES_MAX} are the most"
