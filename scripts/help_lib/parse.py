# SPDX-License-Identifier: Apache-2.0
"""Reads what a program prints for --help, as CLI11 and argparse lay it out."""

import dataclasses
import os
import re

_HEADINGS = {
    "Options": "options",
    "options": "options",
    "Positionals": "positionals",
    "positional arguments": "positionals",
    "Subcommands": "commands",
}
_CLI11_RIGHT = 30


class HelpError(Exception):
    """A program whose help cannot be had, or is not laid out as it is known."""


@dataclasses.dataclass
class Option:
    """An option, or a positional argument, whose name then has no dash."""

    names: list[str]
    value: str  # what stands behind the names: `TEXT REQUIRED`, `N`; empty: a flag
    help: str


@dataclasses.dataclass
class Command:
    """A program, or one of its subcommands."""

    words: list[str]
    summary: str = ""
    usage: list[str] = dataclasses.field(default_factory=list)
    positionals: list[Option] = dataclasses.field(default_factory=list)
    options: list[Option] = dataclasses.field(default_factory=list)
    commands: list["Command"] = dataclasses.field(default_factory=list)
    epilog: str = ""

    def everything(self) -> list["Command"]:
        """This one, its subcommands, theirs, ..."""
        return [self] + [below for command in self.commands for below in command.everything()]


def _columns(line: str, is_split: bool) -> tuple[str, str]:
    """The left column may reach up to the right one, which CLI11 begins at its 31st character."""
    left, blanks, right = re.sub(r" {2,}", "\0", line.strip(), count=1).partition("\0")
    if not blanks and not is_split and line[_CLI11_RIGHT - 1 : _CLI11_RIGHT] == " ":
        return line[: _CLI11_RIGHT - 1].strip(), line[_CLI11_RIGHT:]
    return left, right


def _entries(lines: list[str], where: str) -> list[tuple[str, str]]:
    """(left, right) of the lines of a section; a long left column has its right one below it."""
    found: list[tuple[str, str]] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if re.match(r" {2}\S", line):
            found.append(_columns(line, is_split=following.startswith("    ")))
        elif found and line.startswith("    "):
            left, right = found[-1]
            found[-1] = (left, f"{right} {line.strip()}".strip())
        else:
            raise HelpError(f"{where}: the help has a line that is no entry: '{line}'")
    return found


def _option(left: str, right: str) -> Option:
    """`-o,--output TEXT REQUIRED`, or as argparse has it: `-o FILE, --output FILE`."""
    if not left.startswith("-"):
        name, _, value = left.partition(" ")
        return Option([name], value, right)
    own = re.split(r" (?:Excludes|Needs):", left)[0]  # the names of other options stand behind these words
    names = re.findall(r"(?:^|[\s,])(--?[A-Za-z][\w-]*)", own)
    value = re.split(re.escape(names[-1]) + r"(?![\w-])", left, maxsplit=1)[1].strip()
    return Option(names, value, right)


def parse(text: str, words: list[str]) -> Command:
    """`commands` of the result have their words and summaries only: their help is another call."""
    where = " ".join(words)
    command = Command(words)
    lines = text.rstrip().split("\n")
    at = 0
    before: list[str] = []
    sections = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if re.match(r"usage: ", line, re.IGNORECASE):
            program, blank, rest = line.partition(": ")[2].strip().partition(" ")
            command.usage.append(os.path.basename(program) + blank + rest)
            while at < len(lines) and lines[at].startswith(" "):
                command.usage.append(lines[at].strip())
                at += 1
        elif line.rstrip(":") in _HEADINGS and line.endswith(":"):
            sections += 1
            end = next((i for i in range(at, len(lines)) if not lines[i].strip()), len(lines))
            entries = _entries(lines[at:end], where)
            kind = _HEADINGS[line.rstrip(":")]
            if kind == "commands":
                command.commands = [Command([*words, left], right) for left, right in entries]
            else:
                setattr(command, kind, [_option(*entry) for entry in entries])
            at = end
        elif line.startswith("[Option Group"):
            raise HelpError(f"{where}: the help has a section that is not known: {line}")
        elif sections:
            rest = "\n".join(lines[at - 1 :])
            if any(f"\n{heading}:" in rest for heading in _HEADINGS):
                before.append(line)
                continue
            command.epilog = rest.strip("\n")
            break
        else:
            before.append(line)
    command.summary = " ".join(" ".join(before).split())
    if not command.usage or not command.options:
        raise HelpError(f"{where}: its help has no usage or no options")
    return command
