# SPDX-License-Identifier: Apache-2.0
"""Kinds of arguments that the commands of this folder have in common: each parses, or says what is wrong."""

import argparse
import os
import re


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


def output_file(text: str) -> str:
    path = os.path.abspath(text)
    if os.path.isdir(path) or not os.path.isdir(os.path.dirname(path)):
        raise argparse.ArgumentTypeError(f"{text} cannot be written: there is no such folder")
    return path


def directory(text: str) -> str:
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return os.path.abspath(text)
