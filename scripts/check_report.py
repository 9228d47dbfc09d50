#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/check.sh says about the files that its runners left.

usage: scripts/check_report.py count JUNIT           how many tests passed, failed and were skipped
       scripts/check_report.py failures FOLDER NAME…  what failed in the runs of these names, and why

A run is FOLDER/NAME.xml and FOLDER/NAME.log, with dashes for blanks. A run without a failed test in its JUnit file
(a crash, a deadline, a check that is no test) is told by the end of its log.
"""

import os
import sys
import xml.etree.ElementTree as ElementTree

# All of it fits the end of a log that is cut to its last 60 lines.
LINES_MAX = 40
LINES_PER_FAILURE_MAX = 15
COLUMNS_MAX = 160


def cases_of(junit):
    return list(ElementTree.parse(junit).iter("testcase"))


def problem_of(case):
    for kind in ("failure", "error"):
        if (found := case.find(kind)) is not None:
            return found
    return None


def count(junit):
    cases = cases_of(junit)
    failed = sum(problem_of(case) is not None for case in cases)
    skipped = sum(
        problem_of(case) is None
        and (case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"))
        for case in cases
    )
    return len(cases) - failed - skipped, failed, skipped


def message_of(case):
    """Lines that say why. pytest marks them with E, and has the place in its last line; ctest only has what the
    test printed."""
    problem = problem_of(case)
    printed = (case.findtext("system-out") or "").splitlines()
    text = (problem.text or "").strip().splitlines()
    if text:
        # Not the message alone: newer pytest keeps only the first line of a long one.
        marked = [line[1:].strip() for line in text if line.startswith("E ")]
        why = [line for line in marked or (problem.get("message") or "").splitlines() if line.strip()]
        return [*why, text[-1]]
    begin = next((i for i, line in enumerate(printed) if ": Failure" in line or "Sanitizer" in line), None)
    if begin is not None:
        return printed[begin:]
    return [problem.get("message") or "failed", *printed[-LINES_PER_FAILURE_MAX + 1 :]]


def failures_of(folder, name):
    """[(title, lines)] of one run."""
    path = os.path.join(folder, name.replace(" ", "-"))
    try:
        failed = [case for case in cases_of(path + ".xml") if problem_of(case) is not None]
    except (OSError, ElementTree.ParseError):
        failed = []
    if failed:
        return [(f"{name}: {case.get('name')}", message_of(case)) for case in failed]
    try:
        with open(path + ".log", encoding="utf-8", errors="replace") as log:
            return [(name, log.read().splitlines()[-LINES_PER_FAILURE_MAX:])]
    except OSError as error:
        return [(name, [str(error)])]


def shortened(lines, most):
    """Both ends of a long message: a program's output, say, stands before its exit code."""
    if len(lines) <= most:
        return lines
    head = most // 2
    return [*lines[:head], "…", *lines[len(lines) - (most - head - 1) :]][:most]


def report(failures):
    """Every title as long as there is room; the rest of the room is shared by the messages."""
    lines = []
    each = min(LINES_PER_FAILURE_MAX, max(LINES_MAX // max(len(failures), 1) - 1, 0))
    for title, message in failures[:LINES_MAX]:
        lines.append(f"FAILED {title}")
        lines += ["    " + line for line in shortened([line for line in message if line.strip()], each)]
    if len(failures) > LINES_MAX:
        lines.append(f"and {len(failures) - LINES_MAX} more")
    return [line[:COLUMNS_MAX] for line in lines]


def main():
    match sys.argv[1:]:
        case ["count", junit]:
            print(*count(junit))
        case ["failures", folder, *names]:
            print(*report([one for name in names for one in failures_of(folder, name)]), sep="\n")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
