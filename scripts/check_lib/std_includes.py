# SPDX-License-Identifier: Apache-2.0
"""Finds names of the standard library whose header is not included, which builds with some compilers by luck.

A header includes what it uses itself. A source may leave to our own headers what these include."""

import re
from collections.abc import Iterable, Iterator, Mapping

from cpp_scopes import NOT_CODE, blank

_NAMES = {
    "array": r"std::array\b",
    "atomic": r"std::(?:atomic\b|atomic_\w+|memory_order\w*)",
    "chrono": r"std::chrono\b",
    "condition_variable": r"std::condition_variable\w*",
    "cmath": r"std::(?:sqrt|log|log2|log10|exp|exp2|pow|floor|ceil|round|l?lround|isnan|isinf|isfinite|hypot|fma)\b",
    "cstdint": r"(?<![\w:])(?:std::)?u?int(?:8|16|32|64|ptr|max)_t\b",
    "cstdio": r"std::(?:v?f?printf|v?snprintf|fputs|puts|fputc|perror|fopen|fclose|fread|fwrite|fflush|FILE)\b",
    "cstdlib": r"std::(?:malloc|calloc|realloc|aligned_alloc|free|getenv|abort|exit|_Exit|strto\w+|system|atexit)\b",
    "cstring": r"std::(?:mem(?:cpy|cmp|move|set|chr)|str(?:len|n?cmp|chr|rchr|str|error))\b",
    "deque": r"std::deque\b",
    "functional": r"std::(?:function|hash|invoke|less|greater|plus|reference_wrapper|c?ref)\b",
    "limits": r"std::numeric_limits\b",
    "map": r"std::(?:multi)?map\b",
    "memory": r"std::(?:unique_ptr|shared_ptr|weak_ptr|make_unique\w*|make_shared|enable_shared_from_this|addressof)\b",
    "mutex": r"std::(?:\w*mutex|lock_guard|unique_lock|scoped_lock|call_once|once_flag)\b",
    "optional": r"std::(?:optional|nullopt|make_optional)\b",
    "set": r"std::(?:multi)?set\b",
    "span": r"std::(?:span|as_bytes|as_writable_bytes)\b",
    "string": r"std::(?:string|to_string|getline|sto\w+)\b",
    "string_view": r"std::string_view\b",
    "thread": r"std::(?:jthread|thread|this_thread)\b",
    "unordered_map": r"std::unordered_(?:multi)?map\b",
    "unordered_set": r"std::unordered_(?:multi)?set\b",
    "utility": r"std::(?:move|forward|(?:make_)?pair|exchange|swap|in_place|index_sequence\w*|as_const)\b",
    "variant": r"std::(?:variant|get_if|holds_alternative|visit|monostate)\b",
    "vector": r"std::vector\b",
}
_USES = {header: re.compile(pattern) for header, pattern in _NAMES.items()}
# The same names from another header.
_ALSO = {
    "cstdint": {"stdint.h", "cinttypes", "inttypes.h"},
    "mutex": {"shared_mutex"},
    "string_view": {"string"},
}
_STANDARD = re.compile(r"^#include <([\w./]+)>", re.MULTILINE)
_OURS = re.compile(r'^#include "([\w./-]+)"', re.MULTILINE)


class _Tree:
    """Which headers a file gets with what it includes."""

    def __init__(self, texts: Mapping[str, str]):
        self._texts = texts
        self._by_name: dict[str, list[str]] = {}
        for path in texts:
            self._by_name.setdefault(path.rsplit("/", 1)[-1], []).append(path)

    def standard(self, path: str) -> set[str]:
        """Those of the file itself."""
        return set(_STANDARD.findall(self._texts[path]))

    def standard_of_all(self, path: str) -> set[str]:
        """Those of the file, and of all headers of ours that come with it."""
        found, seen, new = set(), {path}, [path]
        while new:
            one = new.pop()
            found |= self.standard(one)
            for included in self._ours(one):
                if included not in seen:
                    seen.add(included)
                    new.append(included)
        return found

    def _ours(self, path: str) -> Iterable[str]:
        beside = path.rsplit("/", 1)[0] if "/" in path else ""
        for name in _OURS.findall(self._texts[path]):
            if (near := f"{beside}/{name}".lstrip("/")) in self._texts:
                yield near
                continue
            same = self._by_name.get(name.rsplit("/", 1)[-1], ())
            yield from (one for one in same if f"/{one}".endswith(f"/{name}"))


def breaches(texts: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """(path, line, what is wrong); `texts`: by path."""
    tree = _Tree({path: text for path, text in texts.items() if path.endswith((".h", ".cpp"))})
    for path, text in texts.items():
        if not path.endswith((".h", ".cpp")):
            continue
        code = NOT_CODE.sub(blank, text)
        has = tree.standard(path) if path.endswith(".h") else tree.standard_of_all(path)
        for header, uses in _USES.items():
            if has.isdisjoint({header, *_ALSO.get(header, ())}) and (match := uses.search(code)):
                yield path, code.count("\n", 0, match.start()) + 1, f"{match[0]} needs #include <{header}>"
