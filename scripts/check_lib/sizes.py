# SPDX-License-Identifier: Apache-2.0
"""Finds functions and classes that are so long that there is a second idea in them.

In C++ the lines of a body count, from that of its { to that of its }; in Python all from `def` or `class` on. Blank
lines and comments count, and so does all that stands within: a lambda with its function, the functions of a class with
the class. A C++ table (`= {` outside of functions) is data and may be long."""

import ast
from collections.abc import Iterator

import cpp_scopes

FUNCTION_LINES_MAX = 60
CLASS_LINES_MAX = 300


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
