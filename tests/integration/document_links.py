# SPDX-License-Identifier: Apache-2.0
"""Links of Markdown documents below a folder: to files, and to headings as GitHub and GitLab name them."""

import pathlib
import re

_CODE = re.compile(r"^```.*?^```|<!--.*?-->", re.M | re.S)


def prose(path: pathlib.Path) -> str:
    return _CODE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: pathlib.Path) -> set[str]:
    """The names of all headings; the second one of a name is NAME-1."""
    found: list[str] = []
    for heading in re.findall(r"^#+ +(.+?) *$", prose(path), re.M):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.append(name if name not in found else f"{name}-{found.count(name)}")
    return set(found)


def links_in(text: str) -> list[str]:
    """Those that lead to something beside the document, or within it."""
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]


def broken_links(root: pathlib.Path, documents: list[pathlib.Path]) -> list[str]:
    """Links that lead nowhere, or out of the folder, with the document that has them."""
    found = []
    for document in documents:
        for link in links_in(prose(document)):
            name, _, anchor = link.partition("#")
            target = (document.parent / name).resolve() if name else document.resolve()
            is_there = target.exists() and target.is_relative_to(root.resolve())
            if not is_there or (anchor and anchor not in anchors(target)):
                found.append(f"{document.relative_to(root)}: {link}")
    return found
