# SPDX-License-Identifier: Apache-2.0
"""The command lines of Python programs: wrong arguments end them as they end the other programs of braid, and shells
complete their words (src/arguments does the same for those in C++)."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from typing import NoReturn

COMPLETE = "__complete"
_FILES = ("FILE", "FOLDER", "SCRIPT")


class Parser(argparse.ArgumentParser):
    """Wrong arguments are told in one line, with the option that may have been meant, and the exit code is 2."""

    def __init__(self, **settings):
        super().__init__(allow_abbrev=False, **settings)

    def parse_args(self, args=None, namespace=None):
        words = list(sys.argv[1:] if args is None else args)
        if words[:1] == [COMPLETE]:
            print(complete(self, words[1:]), end="")
            self.exit(0)
        walk = _Walk(self)
        for word in words:
            walk.take(word)
        if walk.unknown is not None:
            self.error(self._about(walk.unknown))
        return super().parse_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} ({self.prog} --help says more)\n")

    def _about(self, unknown: str) -> str:
        names = [name for action in self._actions for name in action.option_strings]
        near = difflib.get_close_matches(unknown, names, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        return f"there is no option {unknown!r} here{hint}"


class _Walk:
    """Follows the words of a command line."""

    unknown: str | None = None  # the first option that there is not

    def __init__(self, parser: Parser):
        self._options = {name: action for action in parser._actions for name in action.option_strings}
        self._arguments = [action for action in parser._actions if not action.option_strings]
        self._open: argparse.Action | None = None  # takes the next word
        self._has_only_arguments = False
        self._place = 0  # of the argument that comes next

    def take(self, word: str) -> None:
        if self._open is not None:
            self._open = None
        elif word == "--":
            self._has_only_arguments = True
        elif self._is_option(word):
            self._take_option(word)
        elif self._place < len(self._arguments) and self._arguments[self._place].nargs in (None, "?"):
            self._place += 1

    def offers_for(self, typed: str) -> str:
        name, equals, _ = typed.partition("=")
        offers: list[tuple[str, str]] = []
        has_files = False
        if self._open is not None:
            offers, has_files = _values(self._open, "")
        elif self._is_option(typed) and equals:
            if name in self._options:
                offers, has_files = _values(self._options[name], name + equals)
        elif self._is_option(typed):
            offers = [(name, action.help or "") for name, action in self._options.items()]
        elif self._place < len(self._arguments):
            offers, has_files = _values(self._arguments[self._place], "")
        lines = [f"{word}\t{' '.join(means.split())}\n" for word, means in offers if word.startswith(typed)]
        return ("files\n" if has_files else "words\n") + "".join(lines)

    def _is_option(self, word: str) -> bool:
        is_of_script = self._place < len(self._arguments) and self._arguments[self._place].nargs == argparse.REMAINDER
        return word.startswith("-") and word != "-" and not self._has_only_arguments and not is_of_script

    def _take_option(self, word: str) -> None:
        name, equals, _ = word.partition("=")
        action = self._options.get(name)
        if action is not None:
            self._open = action if action.nargs is None and not equals else None
        elif word.startswith("--") and self.unknown is None:
            self.unknown = name


def _values(action: argparse.Action, before: str) -> tuple[list[tuple[str, str]], bool]:
    has_files = action.metavar in _FILES or action.nargs == argparse.REMAINDER
    return [(before + str(choice), "") for choice in action.choices or ()], has_files


def complete(parser: Parser, words: Sequence[str]) -> str:
    """What a shell offers for the last of `words`, as src/arguments/complete_words.h tells it."""
    if not words:
        return "words\n"
    walk = _Walk(parser)
    for word in words[:-1]:
        walk.take(word)
    return walk.offers_for(words[-1])
