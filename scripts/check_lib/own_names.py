# SPDX-License-Identifier: Apache-2.0
"""Finds names that two files of one room give to things of their own, in anonymous namespaces.

The sanitizers' builds and clang-tidy compile the files of a room joined, where such names are the same. So the release
build is well and those fail, half an hour later. Functions are the same where their parameters have the same types."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import cpp_scopes

ROOM = re.compile(r"(src/\w+|braidctl|daemon)/(?!main\.)\w+\.cpp")  # main.cpp is a target of its own
APART = re.compile(r"set_source_files_properties\(([\w. ]+?) PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON\)")
BRACED = re.compile(r"\{[^{}]*\}")
TEMPLATE = re.compile(r"^template\s*<[^;{]*?>\s*(?=[a-zA-Z])")
TYPE = re.compile(r"^(?:enum class|enum|class|struct|union)\s+(?:[A-Z_]+\([^()]*\)\s+)?(\w+)")
ALIAS = re.compile(r"^using\s+(\w+)\s*=")
FUNCTION = re.compile(r"[\s*&>](\w+)\s*\((.*)\)\s*(?:const|noexcept|->.*)?$")
VALUE = re.compile(r"(\w+)\s*(?:\[[^\]]*\])?\s*(?:=.*)?$")
END = re.compile(r"(?<=;)|(?<=§)(?=\s*\n)")  # of a declaration, of a body
PARAMETER_NAME = re.compile(r"(?<=[\w>&*\s])\b\w+$")


class Name(NamedTuple):
    line: int
    name: str
    parameters: str = ""  # of a function: their types


def _without_bodies(text: str) -> str:
    """Braces and what they hold become a § with as many lines."""
    while (fewer := BRACED.sub(lambda match: "§" + "\n" * match[0].count("\n"), text)) != text:
        text = fewer
    return text


def _types(parameters: str) -> str:
    kept = []
    for parameter in re.sub(r"<[^<>]*>", lambda match: match[0].replace(",", ";"), parameters).split(","):
        words = parameter.split("=")[0].strip()
        bare = PARAMETER_NAME.sub("", words).strip()
        kept.append(" ".join((bare or words).split()))
    return ", ".join(kept)


def _name_of(words: str, line: int, has_body: bool) -> Name | None:
    words = TEMPLATE.sub("", words)
    if match := TYPE.match(words) or ALIAS.match(words):
        return Name(line, match[1])
    if words.startswith("using "):
        return None
    if has_body and "=" not in words.split("(")[0] and (match := FUNCTION.search(words)):
        return Name(line, match[1], f"({_types(match[2])})")
    if "(" not in words.split("=")[0] and (match := VALUE.search(words)):
        return Name(line, match[1])
    return None


def own_names(text: str) -> Iterator[Name]:
    code = cpp_scopes.NOT_CODE.sub(cpp_scopes.blank, text).split("\n")
    for scope in cpp_scopes.scopes(text):
        if scope.kind != "namespace" or scope.name != cpp_scopes.ANONYMOUS:
            continue
        line = scope.first_line + 1
        for piece in END.split(_without_bodies("\n".join(code[scope.first_line : scope.last_line - 1]))):
            words = " ".join(piece.rstrip("§;").split())
            first = line + len(piece[: len(piece) - len(piece.lstrip())].split("\n")) - 1
            if words and not words.startswith("#") and (name := _name_of(words, first, piece.endswith("§"))):
                yield name
            line += piece.count("\n")


def breaches(texts: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """(path, line, what is wrong). `texts`: by path."""
    first: dict[tuple[str, str, str], tuple[str, int]] = {}
    for path in sorted(texts):
        match = ROOM.fullmatch(path)
        if match is None:
            continue
        room = match[1]
        apart = APART.search(texts.get(f"{room}/CMakeLists.txt", ""))
        if apart is not None and path.removeprefix(f"{room}/") in apart[1].split():
            continue
        for one in own_names(texts[path]):
            other = first.setdefault((room, one.name, one.parameters), (path, one.line))
            if other[0] != path:
                yield path, one.line, (
                    f"'{one.name}' is also a name of its own in {other[0]}:{other[1]}: they are compiled joined")
