# SPDX-License-Identifier: Apache-2.0
"""Finds sentences of documents that make a reader stop: "who" for a thing, "such" for a noun that is not repeated, a
sentence that begins with something else than its subject. Lines of documents have 100 columns at most."""

import re
from collections.abc import Iterator, Mapping

COLUMNS_MAX = 100
# Put together so that this file does not breach its own rule.
WORDS = re.compile(r"\b(" + "|".join(("who" + "ever", "such" + " by", "that" + " of which")) + r")\b", re.IGNORECASE)
OF = re.compile(r"(?:^|(?<=[.!?:;)\"*|] ))Of (?=[a-z\d`*\"(])")
CODE = re.compile(r"`[^`]*`")
MARK = re.compile(r"(?:[-*] |\d+\. |#+ |> |\|\s*)")  # of an item, a heading, a row of a table
GENERATED = re.compile(r"<!-- \w+: (begin|end) -->")


def _prose_of_document(text: str) -> Iterator[tuple[int, str, str]]:
    """Number, line and words of each line; code has no words."""
    in_code = False
    for number, line in enumerate(text.split("\n"), 1):
        is_fence = line.lstrip().startswith("```")
        in_code ^= is_fence
        words = "" if in_code or is_fence else MARK.sub("", CODE.sub("`…`", line.strip()), count=1)
        yield number, line, words


def _too_wide(path: str, text: str) -> Iterator[tuple[str, int, str]]:
    generated = False
    for number, line, words in _prose_of_document(text):
        if match := GENERATED.fullmatch(line):
            generated = match[1] == "begin"
        is_text = words and not generated and not line.startswith(("|", "!["))
        if is_text and len(line) > COLUMNS_MAX and " " in words:
            yield path, number, f"{len(line)} columns, {COLUMNS_MAX} are the most of a document"


def _said_twice(path: str, prose: Iterator[tuple[int, str, str]]) -> Iterator[tuple[str, int, str]]:
    begins = True  # a sentence, with the next words
    for number, line, words in prose:
        for match in WORDS.finditer(words):
            yield path, number, f"'{match[0]}': repeat the noun"
        begins = begins or bool(MARK.match(line.lstrip()))
        for match in OF.finditer(words):
            if match.start() > 0 or begins:
                yield path, number, f"'{words[match.start() :][:20]}…': begin with the subject"
        begins = not words or words.endswith((".", "!", "?", ":", "|"))


def breaches(texts: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    for path, text in texts.items():
        if path.endswith(".md"):
            yield from _too_wide(path, text)
            yield from _said_twice(path, _prose_of_document(text))
