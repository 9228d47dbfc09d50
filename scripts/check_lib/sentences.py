# SPDX-License-Identifier: Apache-2.0
"""Finds, in documents and comments, words that make a reader stop: "who" for a thing, "such" for a noun that was not
repeated, a sentence that begins with what it is not about."""

import io
import re
import tokenize
from collections.abc import Iterator, Mapping

# Put together so that this file does not breach its own rule.
WORDS = re.compile(r"\b(" + "|".join(("who" + "ever", "such" + " by", "that" + " of which")) + r")\b", re.I)
SENTENCE = re.compile(r"(?:(?<=^)|(?<=[.!?:;)\"*] ))(Of) (?=[a-z\d`*\"(0-9])")
CODE_OF_A_DOCUMENT = re.compile(r"`[^`]*`")
CPP_COMMENT = re.compile(r"//+<?!? ?(.*)|^\s*\*(?: (.*)|$)|/\*+!?<?(.*)")


def _paragraphs_of_document(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Number and words of each line that is prose; an empty one stands between paragraphs."""
    in_code = False
    for number, line in enumerate(lines, 1):
        words = line.strip()
        if words.startswith("```"):
            in_code = not in_code
            words = ""
        if in_code:
            continue
        yield number, CODE_OF_A_DOCUMENT.sub("`…`", re.sub(r"^(?:[-*] |\d+\. |#+ |> )", "", words))


def _comments_of_cpp(lines: list[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, 1):
        if match := CPP_COMMENT.search(line):
            yield number, next(filter(None, match.groups()), "").strip().removesuffix("*/")
        else:
            yield number, ""


def _comments_of_python(text: str) -> Iterator[tuple[int, str]]:
    """Comments, and strings that stand by themselves: docstrings."""
    found = {}
    begins = True  # a statement may begin here
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found[token.start[0]] = token.string.lstrip("#").strip()
            elif token.type == tokenize.STRING and begins:
                for offset, line in enumerate(token.string.split("\n")):
                    found[token.start[0] + offset] = line.strip().strip("\"'").strip()
            begins = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT) or (
                begins and token.type in (tokenize.NL, tokenize.ENCODING)
            )
    except (tokenize.TokenError, SyntaxError):
        return  # style-check says so anyway
    for number in range(1, text.count("\n") + 2):
        yield number, found.get(number, "")


def prose_of(path: str, text: str) -> Iterator[tuple[int, str]]:
    if path.endswith(".md"):
        yield from _paragraphs_of_document(text.split("\n"))
    elif path.endswith((".h", ".cpp", ".c")):
        yield from _comments_of_cpp(text.split("\n"))
    elif path.endswith(".py") or text.startswith("#!/usr/bin/env python3"):
        yield from _comments_of_python(text)


def breaches_in(path: str, text: str) -> Iterator[tuple[int, str]]:
    ends = True  # a sentence begins with the next words
    for number, words in prose_of(path, text):
        for match in WORDS.finditer(words):
            yield number, f"'{match[0]}': repeat the noun"
        for match in SENTENCE.finditer(words):
            if match.start() > 0 or ends:
                yield number, f"'{words[match.start() :][:20]}…': begin with the subject, not with 'Of'"
        ends = not words or words.endswith((".", "!", "?", ":", "…", "|")) or words.startswith("|")


def breaches(texts: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    for path, text in texts.items():
        for line, what in breaches_in(path, text):
            yield path, line, what
