# SPDX-License-Identifier: Apache-2.0
"""Man pages: hand-written prose with the parts that programs say themselves put in.

A template has lines that stand for such a part:
  @USAGE@  @OPTIONS@  @COMMANDS@  @EPILOG@  @KEYS@
"""

import datetime
import os
import pathlib
import re

from .keys import Section
from .parse import Command, HelpError, Option


def escape(text: str) -> str:
    """`text` as it stands, also at the beginning of a line."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = text.replace("^", "\\(ha").replace("~", "\\(ti")
    return re.sub(r"^([.'])", r"\\&\1", text)


def prose(text: str) -> list[str]:
    """Text to be filled: a sentence a line, which is what roff expects."""
    return [escape(sentence) for sentence in re.split(r"(?<=\.) (?=[A-Z])", text) if sentence]


def _named(names: list[str], value: str) -> str:
    bold = ", ".join(f"\\fB{escape(name)}\\fR" for name in names)
    return f"{bold} \\fI{escape(value)}\\fR" if value else bold


_CHOICES_COLUMNS_MAX = 30  # a longer placeholder has no place where a line may break
_RANGE = re.compile(r" in \[(\S+) - (\S+)\]")
_CLI11_VALUE = re.compile(r"(?P<type>[A-Z]{3,})(?P<check>:.*?)??(?:=(?P<default>[^\s=]+))?(?P<more> \.\.\.)?$")


def _value(option: Option) -> tuple[str, list[str]]:
    """The placeholder of an option's value, and what else stands behind its names, in words."""
    shown = re.split(r" ?(?:Excludes|Needs):", option.value)[0]
    shown, is_required = re.subn(r" ?REQUIRED", "", shown)
    notes = ["required"] if is_required else []
    if parts := _CLI11_VALUE.match(shown):
        listed = re.search(r"\{(.*)\}", parts["check"] or "")
        is_short = listed is not None and len(listed[0]) <= _CHOICES_COLUMNS_MAX
        shown = (listed[0] if is_short else parts["type"]) + ("..." if parts["more"] else "")
        notes += [f"one of {listed[1].replace(',', ', ')}"] if listed and not is_short else []
        notes += [f"{bounds[1]} to {bounds[2]}"] if (bounds := _RANGE.search(parts["check"] or "")) else []
        notes += [f"default: {parts['default']}"] if parts["default"] else []
    for relation, says in (("Excludes", "not with"), ("Needs", "with")):
        if others := re.search(rf"{relation}: ([^:]*?)(?: \w+:|$)", option.value):
            notes.append(f"{says} {', '.join(others[1].split())}")
    return shown, notes


def _option(option: Option) -> list[str]:
    shown, notes = _value(option)
    words = option.help + (f" ({'; '.join(notes)})" if notes else "")
    return [".TP", _named(option.names, shown), *prose(words or "\\&")]


def _is_help(option: Option) -> bool:
    return "--help" in option.names


def options(command: Command) -> list[str]:
    return [line for option in command.positionals + command.options for line in _option(option)]


def commands(program: Command) -> list[str]:
    lines: list[str] = []
    for command in program.everything()[1:]:
        lines += [f".SS {escape(' '.join(command.words[1:]))}", *prose(command.summary)]
        own = [o for o in command.positionals + command.options if not _is_help(o)]
        if not command.commands:
            lines += [".PP", f".B {escape(' '.join(command.usage))}"]
        lines += [line for option in own for line in _option(option)]
    return lines


def usage(command: Command) -> list[str]:
    lines: list[str] = []
    for line in command.usage:
        lines += [f".B {escape(line)}", ".br"]
    return lines[:-1]


def epilog(command: Command) -> list[str]:
    return [".nf", *(escape(line) or "\\&" for line in command.epilog.split("\n")), ".fi"]


def keys(sections: list[Section]) -> list[str]:
    lines: list[str] = []
    for section in sections:
        lines += [f".SS {section.name}", *prose(section.help)]
        for key in section.keys:
            lines += [".TP", f".B {escape(key.name)}", *prose(key.help)]
            lines += [f"Default: \\fB{escape(key.default)}\\fR."]
    return lines


def _date() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.datetime.fromtimestamp(int(epoch), datetime.UTC) if epoch else datetime.datetime.now(datetime.UTC)
    return when.strftime("%Y-%m-%d")


def page(template: pathlib.Path, version: str, parts: dict[str, list[str]]) -> str:
    """`template` is called NAME.SECTION.in, and begins with its comment; the title is put before the first .SH."""
    name, section = template.name.removesuffix(".in").rsplit(".", 1)
    title = f'.TH {escape(name.upper())} {section} {_date()} "braid {version}" braid'
    lines: list[str] = []
    for line in template.read_text(encoding="utf-8").rstrip("\n").split("\n"):
        if line == ".SH NAME":
            lines += [title, ".nh", ".ad l", line]
        elif placeholder := re.fullmatch(r"@([A-Z]+)@", line):
            if placeholder[1].lower() not in parts:
                raise HelpError(f"{template}: '{line}' stands for nothing; there are {', '.join(parts)}")
            lines += parts[placeholder[1].lower()]
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
