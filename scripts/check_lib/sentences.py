# SPDX-License-Identifier: Apache-2.0
"""Finds sentences that make a reader stop, in documents and comments: "who" for a thing, "such" for a noun that
is not repeated, a sentence that begins with something else than its subject. Lines of documents have 100 columns."""

import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping

COLUMNS_MAX = 100
# Put together so that this file does not breach its own rule.
WORDS = re.compile(r"\b(" + "|".join(("who" + "ever", "such" + " by", "that" + " of which")) + r")\b", re.IGNORECASE)
OF = re.compile(r"(?:^|(?<=[.!?:;)\"*|] ))Of (?=[a-z\d`*\"(])")
CODE = re.compile(r"`[^`]*`")
MARK = re.compile(r"(?:[-*] |\d+\. |#+ |> |\|\s*)")  # of an item, a heading, a row of a table
GENERATED = re.compile(r"<!-- \w+: (begin|end) -->")
COMMENT_OF_CPP = re.compile(r"(?<![:\"\w])//+!?<? ?(.*)|^\s*/?\*+[!<]* ?(.*?)(?:\*/)?$")


def _prose_of_document(text: str) -> Iterator[tuple[int, str, str]]:
    """Number, line and words of each line; code has no words."""
    in_code = False
    for number, line in enumerate(text.split("\n"), 1):
        is_fence = line.lstrip().startswith("```")
        in_code ^= is_fence
        words = "" if in_code or is_fence else MARK.sub("", CODE.sub("`…`", line.strip()), count=1)
        yield number, line, words


def _comments_of_cpp(text: str) -> Iterator[tuple[int, str, str]]:
    """Where code stands before a comment, no sentence goes on from the line before."""
    for number, line in enumerate(text.split("\n"), 1):
        match = COMMENT_OF_CPP.search(line)
        words = (match[1] or match[2] or "").strip() if match else ""
        if not words or line[: match.start()].strip():
            yield number, line, ""
        yield number, line, words


def _comments_of_python(text: str) -> Iterator[tuple[int, str, str]]:
    """Comments, and strings that are statements: documentation."""
    found = {}
    begins = True  # a statement, with the next token
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found[token.start[0]] = token.string.lstrip("#").strip()
            elif token.type == tokenize.STRING and begins:
                for offset, line in enumerate(token.string.split("\n")):
                    found[token.start[0] + offset] = line.strip().strip('"').strip()
            if token.type not in (tokenize.NL, tokenize.COMMENT):
                begins = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    except (tokenize.TokenError, SyntaxError):
        return  # style-check says so
    for number, line in enumerate(text.split("\n"), 1):
        words = found.get(number, "")
        if not line.lstrip().startswith("#") and "#" in line or line.lstrip().startswith('"""'):
            yield number, line, ""
        yield number, line, words


def _too_wide(path: str, text: str) -> Iterator[tuple[str, int, str]]:
    generated = False
    for number, line, words in _prose_of_document(text):
        if match := GENERATED.fullmatch(line):
            generated = match[1] == "begin"
        is_text = words and not generated and not line.startswith(("|", "!["))
        if is_text and len(line) > COLUMNS_MAX and " " in words:
            yield path, number, f"{len(line)} columns, {COLUMNS_MAX} are the most of a document"


def _read_twice(path: str, prose: Iterable[tuple[int, str, str]]) -> Iterator[tuple[str, int, str]]:
    begins = True  # a sentence, with the next words
    for number, line, words in prose:
        for match in WORDS.finditer(words):
            yield path, number, f"'{match[0]}': repeat the noun"
        begins = begins or bool(MARK.match(line.lstrip()))
        for match in OF.finditer(words):
            if match.start() > 0 or begins:
                yield path, number, f"'{words[match.start() :][:20]}…': begin with the subject"
        begins = not words or "SPDX" in words or words.endswith((".", "!", "?", ":", "|"))


def breaches(texts: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    for path, text in texts.items():
        if path.endswith(".md"):
            yield from _too_wide(path, text)
            yield from _read_twice(path, _prose_of_document(text))
        elif path.endswith((".h", ".cpp", ".c")):
            yield from _read_twice(path, _comments_of_cpp(text))
        elif path.endswith(".py") or text.startswith("#!/usr/bin/env python3"):
            yield from _read_twice(path, _comments_of_python(text))
