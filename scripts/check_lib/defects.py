# SPDX-License-Identifier: Apache-2.0
"""The patches of tests/defects: each puts one defect into the product, and its header names the tests that find it.
Finds headers that are not whole, tests that are gone, and patches that no longer apply."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from typing import NamedTuple

FOLDER = "tests/defects/"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PRODUCT = ("src/", "client/", "daemon/", "braidctl/", "python/", "proto/")
CHANGED_LINES_MAX = 5  # added, and as many taken away
ROWS = ("a flow", "a NIC", "a trainer", "a daemon", "a node", "a peer that stops", "a flow that goes silent")
TEST = re.compile(r"unit \w+_test --gtest_filter=\S+|(integration|python) test_\w+\.py::\S+")
TOLD = {"What": re.compile(r"\S.*"), "Found by": TEST, "Was real": re.compile("yes"), "Row": re.compile("|".join(ROWS))}


class Defect(NamedTuple):
    name: str
    what: str
    room: str
    tests: list[str]
    patch: str


def _header(text: str) -> Iterator[tuple[int, str, str]]:
    """Number, key and value of each line above the diff."""
    for number, line in enumerate(text.partition("\n--- ")[0].split("\n"), 1):
        if line:
            key, _, value = line.partition(": ")
            yield number, key, value


def room_of(patch: str) -> str:
    parts = re.findall(r"^\+\+\+ b/(\S+)", patch, re.MULTILINE)[0].split("/")
    return parts[1] if parts[0] == "src" else parts[0]


def parse(path: str, text: str) -> Defect:
    told = [(key, value) for _, key, value in _header(text)]
    name = os.path.basename(path).removesuffix(".patch")
    return Defect(name, dict(told)["What"], room_of(text), [value for key, value in told if key == "Found by"], text)


def _wrong(text: str) -> Iterator[tuple[int, str]]:
    keys = []
    for number, key, value in _header(text):
        keys.append(key)
        if key not in TOLD:
            yield number, f"'{key}': right are {', '.join(TOLD)}, each followed by ': '"
        elif not TOLD[key].fullmatch(value):
            yield number, f"{key}: '{value}' is not what CONTRIBUTING.md describes"
        elif key != "Found by" and keys.count(key) > 1:
            yield number, f"{key}: stands twice"
    for key in ("What", "Found by"):
        if key not in keys:
            yield 1, f"'{key}: …' is missing above the diff"
    files = re.findall(r"^\+\+\+ b/(\S+)", text, re.MULTILINE)
    if not files or not all(file.startswith(PRODUCT) for file in files):
        yield 1, f"a defect changes files of {', '.join(PRODUCT)}"
    for sign in "+-":
        if len(re.findall(rf"^\{sign}(?!\{sign}\{sign} )", text, re.MULTILINE)) > CHANGED_LINES_MAX:
            yield 1, f"more than {CHANGED_LINES_MAX} lines with '{sign}': a defect is small"


def _gone(text: str, tests: str) -> Iterator[tuple[int, str]]:
    """Names of tests that their sources do not have."""
    for number, key, value in _header(text):
        for name in re.findall(r"(?:\.|::)(\w+)", value) if key == "Found by" else ():
            if name not in tests:
                yield number, f"there is no test '{name}'"


def why_not_applied(root: str, patch: str) -> str:
    """Empty: it applies."""
    command = ["git", "-C", root, "apply", "--check", "-"]
    done = subprocess.run(command, input=patch, capture_output=True, text=True, check=False, timeout=60)
    return done.stderr.strip().replace("\n", "; ") if done.returncode else ""


def breaches(texts: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Without any text of a test, as scripts/defects asks, no test is missed."""
    tests = "".join(text for path, text in texts.items() if path.startswith("tests/") and not path.startswith(FOLDER))
    for path, text in texts.items():
        if not path.startswith(FOLDER):
            continue
        wrong = list(_wrong(text)) or list(_gone(text, tests) if tests else ())
        yield from ((path, line, what) for line, what in wrong)
        if not wrong and (why := why_not_applied(ROOT, text)):
            yield path, 1, f"no longer applies: {why}"
