# SPDX-License-Identifier: Apache-2.0
"""What the command lines of the cluster and of the tools that run on it have in common.

Each kind of argument parses its text, or says what is wrong with it.
"""

import argparse
import difflib
import os
import re
from typing import NoReturn


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            names = [name for action in self._actions for name in action.option_strings]
            near = difflib.get_close_matches(unknown.split()[0].partition("=")[0], names, n=1)
            message += f"; did you mean '{near[0]}'?" if near else ""
        super().error(message)


def parser(
    prog: str, description: str, epilog: str, usage: str | None = None
) -> argparse.ArgumentParser:
    """Takes both texts as they stand, and options by their whole names only."""
    return _Parser(
        prog=prog,
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def distinct(parse):
    def parse_list(text: str) -> list:
        values = [parse(part) for part in text.split(",")]
        if len(set(values)) != len(values):
            raise argparse.ArgumentTypeError(f"'{text}' names something twice")
        return values

    return parse_list


def count(low: int, high: int):
    def parse(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {low} to {high}")
        return int(text)

    return parse


def mbit(text: str) -> str:
    if not all(re.fullmatch(r"\d+(\.\d+)?", part) for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of Mbit/s, or several")
    return text


def setting(text: str) -> str:
    if not re.fullmatch(r"[a-z_.]+=.*", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE")
    return text


def existing_file(text: str) -> str:
    if not os.path.isfile(text):
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return os.path.abspath(text)


def executable(text: str) -> str:
    if not os.path.isfile(text) or not os.access(text, os.X_OK):
        raise argparse.ArgumentTypeError(f"{text} is not an executable file")
    return os.path.abspath(text)


def output_file(text: str) -> str:
    path = os.path.abspath(text)
    if os.path.isdir(path) or not os.path.isdir(os.path.dirname(path)):
        raise argparse.ArgumentTypeError(f"{text} cannot be written: there is no such folder")
    return path


def directory(text: str) -> str:
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return os.path.abspath(text)
