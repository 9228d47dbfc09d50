# SPDX-License-Identifier: Apache-2.0
"""Finds modules of python/, and folders of it, that import each other in a circle.

All imports count, also those within functions and those for types only: they, too, make two modules that cannot be
understood one after the other. A folder's __init__.py counts as the folder's own module."""

import ast
from collections.abc import Iterator, Mapping

ROOT = "python/"


def module_of(path: str) -> str:
    return path.removeprefix(ROOT).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports(path: str, text: str, modules: Mapping[str, str]) -> dict[str, int]:
    """The modules that one imports, and the first line that does it."""
    found: dict[str, int] = {}
    for node in ast.walk(ast.parse(text)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                here = module_of(path).split(".") + ([""] if path.endswith("/__init__.py") else [])
                base = ".".join(filter(None, [*here[: -node.level], base]))
            names = [f"{base}.{alias.name}" for alias in node.names]
            names = [name if name in modules else base for name in names]
        for name in names:
            if name in modules and name != module_of(path):
                found.setdefault(name, node.lineno)
    return found


def circle(graph: Mapping[str, Mapping[str, object]]) -> list[str]:
    """One circle of a graph, each node before one that it leads to; empty: there is none."""
    ended: set[str] = set()

    def look(node: str, way: list[str]) -> list[str]:
        if node in way:
            return way[way.index(node):]
        if node in ended:
            return []
        for other in graph[node]:
            if found := look(other, [*way, node]):
                return found
        ended.add(node)
        return []

    return next(filter(None, (look(node, []) for node in graph)), [])


def breaches(texts: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """(path, line, what is wrong); `texts`: by path."""
    modules = {module_of(path): path for path in texts if path.startswith(ROOT) and path.endswith(".py")}
    graph: dict[str, dict[str, int]] = {}
    for module, path in modules.items():
        try:
            graph[module] = imports(path, texts[path], modules)
        except SyntaxError:
            graph[module] = {}  # Said elsewhere.
    if found := circle(graph):
        way = " → ".join([*found, found[0]])
        yield modules[found[0]], graph[found[0]][found[1]], f"modules import each other in a circle: {way}"
        return
    folders: dict[str, dict[str, tuple[str, int]]] = {}
    for module, path in modules.items():
        folder = path.rpartition("/")[0]
        for other, line in graph[module].items():
            its = modules[other].rpartition("/")[0]
            # A package and what it has inside may know each other.
            if not f"{its}/".startswith(f"{folder}/") and not f"{folder}/".startswith(f"{its}/"):
                folders.setdefault(folder, {}).setdefault(its, (path, line))
                folders.setdefault(its, {})
    if found := circle(folders):
        path, line = folders[found[0]][found[1]]
        yield path, line, f"folders import each other in a circle: {' → '.join([*found, found[0]])}"
